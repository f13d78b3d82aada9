"""Lists, re-reads and searches give the issues that there are, as they are now."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.model import Blocker, Comment, IssueId, TrackerErrorKind
from sortie.testing.checks import require, require_equal
from sortie.testing.tracker.rig import (
    THEN,
    Rig,
    as_kept,
    as_listed,
    check,
    make_issue,
    needs,
    read_one,
    refusal,
    without_ids,
)
from sortie.trackers import Capability, IssuesRead, TrackerStates


@check("list.states", "a list holds the issues in the states asked for, and no other")
async def listed_by_states(rig: Rig) -> None:
    """States are compared trimmed and case-folded; no state, no issue."""
    rig.put(make_issue("A-1", "Todo"))
    rig.put(make_issue("A-2", "In Progress"))
    rig.put(make_issue("A-3", "Done"))

    candidates = await rig.tracker.fetch_candidates([" todo", "IN PROGRESS "])
    done = await rig.tracker.fetch_candidates({"done"})
    none = await rig.tracker.fetch_candidates([])

    found = {issue.id: issue.state for issue in candidates}
    require_equal(found, {"A-1": "Todo", "A-2": "In Progress"}, "the list of two states")
    require_equal(
        list(map(without_ids, done)),
        [as_listed(rig, make_issue("A-3", "Done"))],
        "the list of done",
    )
    require_equal(list(none), [], "the list of no state")


@check("list.whole", "a list longer than any page is whole, and no issue comes twice")
async def whole_list(rig: Rig) -> None:
    """150 issues are more than one page of most trackers."""
    for number in range(150):
        rig.put(make_issue(f"A-{number}"))

    candidates = await rig.tracker.fetch_candidates(["todo"])

    ids = sorted(issue.id for issue in candidates)
    require_equal(ids, sorted(f"A-{n}" for n in range(150)), "a list of 150 issues")


@check("list.news", "a list has the edits, moves and additions that people made before it")
async def news_in_lists(rig: Rig) -> None:
    """No answer is from before the question."""
    rig.put(make_issue("A-1"))
    rig.put(make_issue("A-2"))
    before = await rig.tracker.fetch_candidates(["todo"])

    rig.put(make_issue("A-1", title="Another title"))
    rig.put(make_issue("A-2", "Done"))
    rig.put(make_issue("A-3"))
    after = await rig.tracker.fetch_candidates(["todo"])

    require_equal({issue.id for issue in before}, {"A-1", "A-2"}, "the list before")
    titles = {issue.id: issue.title for issue in after}
    require_equal(titles, {"A-1": "Another title", "A-3": "Title of A-3"}, "the list after")


@check("list.removed", "an issue that was removed is not there, and no error")
async def removed(rig: Rig) -> None:
    """A re-read knows it at once, and the list after it; some lists know it by themselves."""
    rig.put(make_issue("A-1"))
    rig.put(make_issue("A-2"))
    await rig.tracker.fetch_candidates(["todo"])

    rig.lose("A-2")
    at_once = {issue.id for issue in await rig.tracker.fetch_candidates(["todo"])}
    read = await rig.tracker.fetch_by_ids([IssueId("A-1"), IssueId("A-2")])
    after = {issue.id for issue in await rig.tracker.fetch_candidates(["todo"])}

    if Capability.REMOVALS in rig.capabilities:
        require_equal(at_once, {"A-1"}, "the list at once")
    require_equal(([i.id for i in read.issues], dict(read.failed)), (["A-1"], {}), "the re-read")
    require_equal(after, {"A-1"}, "the list after the re-read")


@check("read.fields", "every field of an issue arrives as it was written")
async def every_field(rig: Rig) -> None:
    """An issue is the same value after its way through the tracker, in lists and re-reads."""
    whole = make_issue(
        "17",
        identifier="A-1",
        title="Größe: 'quoted' \"twice\" # not a comment",
        description="First line\n\n    code: |\n---\n{{ 7*7 }} 😀",
        priority=2,
        url="https://example.org/A-1",
        assignee="ann",
        issue_type="bug",
        branch_name="fix/a-1",
        parent="A-0",
        comments=(
            Comment(author="ann", body="one\n\n  two\n", created_at=THEN),
            Comment(author="bob", body="three", created_at=THEN),
        ),
    )
    rig.put(whole)

    candidates = await rig.tracker.fetch_candidates(["todo"])
    read = await rig.tracker.fetch_by_ids([IssueId("17")])

    require_equal(list(map(without_ids, candidates)), [as_listed(rig, whole)], "the list")
    reread = IssuesRead(issues=tuple(map(without_ids, read.issues)), failed=read.failed)
    require_equal(reread, IssuesRead(issues=(as_kept(rig, whole),)), "the re-read")


@check("read.authors", "issues and comments have their authors, and one id for each of them")
async def authors(rig: Rig) -> None:
    """Two authors have two ids, in lists and re-reads, on issues and comments."""
    said = (
        Comment(author="ann", body="one", created_at=THEN),
        Comment(author="bob", body="two", created_at=THEN),
    )
    rig.put(make_issue("A-1", author="ann", comments=said))
    rig.put(make_issue("A-2", author="bob"))

    listed = {issue.id: issue for issue in await rig.tracker.fetch_candidates(["todo"])}
    read = [await read_one(rig, name) for name in ("A-1", "A-2")]

    found = [(listed[issue.id].author, issue.author) for issue in read]
    require_equal(found, [("ann", "ann"), ("bob", "bob")], "the authors")
    ids = [issue.author_id for issue in read]
    require(None not in ids and ids[0] != ids[1], f"the ids of two authors are {ids}")
    require_equal([listed[issue.id].author_id for issue in read], ids, "the ids in a list")
    require_equal([c.author_id for c in read[0].comments], ids, "the ids of commentators")


@check("read.labels", "labels arrive as they were written")
async def labels(rig: Rig) -> None:
    """They are the same in lists and re-reads."""
    needs(rig, Capability.LABELS)
    rig.put(make_issue("A-1", labels=("backend", "Good First Issue")))

    candidates = await rig.tracker.fetch_candidates(["todo"])
    read = await read_one(rig, "A-1")

    found = [issue.labels for issue in (*candidates, read)]
    require_equal(found, [("backend", "Good First Issue")] * 2, "the labels")


@check("read.any-state", "a re-read finds issues in any state and leaves out the missing")
async def any_state(rig: Rig) -> None:
    """An id that is not there is in neither field of the answer."""
    rig.put(make_issue("A-1", "Done"))

    read = await rig.tracker.fetch_by_ids([IssueId("A-1"), IssueId("A-2"), IssueId("A-1")])
    nothing = await rig.tracker.fetch_by_ids([])

    found = (list(map(without_ids, read.issues)), dict(read.failed))
    require_equal(found, ([as_kept(rig, make_issue("A-1", "Done"))], {}), "the re-read")
    require_equal(nothing, IssuesRead(), "a re-read of no issue")


@check("read.find", "one issue is found by its identifier or its id, whatever its state")
async def found_by_name(rig: Rig) -> None:
    """With its comments; what is not there is None, not an error."""
    remark = Comment(author="ann", body="hello", created_at=THEN)
    whole = make_issue("17", "Done", identifier="A-1", comments=(remark,))
    rig.put(whole)
    rig.put(make_issue("18", identifier="A-2"))

    found = [await rig.tracker.find(name) for name in ("A-1", "17", "A-3", "../x y")]

    wanted = as_kept(rig, whole)
    told = [issue and without_ids(issue) for issue in found]
    require_equal(told, [wanted, wanted, None, None], "what was found")


@check("read.unreadable", "an issue that cannot be read is reported, and hurts no other")
async def unreadable(rig: Rig) -> None:
    """It is skipped in lists, an error of its own on a re-read, and back once it is repaired."""
    rig.put(make_issue("A-1"))
    rig.put(make_issue("A-2"))
    rig.spoil("A-1")
    invalid = TrackerErrorKind.INVALID

    candidates = await rig.tracker.fetch_candidates(["todo"])
    read = await rig.tracker.fetch_by_ids([IssueId("A-1"), IssueId("A-2")])
    await refusal(rig.tracker.find("A-1"), "find", invalid)
    await refusal(rig.tracker.transition(make_issue("A-1"), "Done"), "transition", invalid)
    rig.put(make_issue("A-1"))

    listed = list(map(without_ids, candidates))
    require_equal(listed, [as_listed(rig, make_issue("A-2"))], "the list")
    reread = list(map(without_ids, read.issues))
    require_equal(reread, [as_kept(rig, make_issue("A-2"))], "the re-read")
    failed = {issue_id: error.kind for issue_id, error in read.failed.items()}
    require_equal(failed, {"A-1": invalid}, "the failed part of the re-read")
    repaired = without_ids(await read_one(rig, "A-1"))
    require_equal(repaired, as_kept(rig, make_issue("A-1")), "the repaired issue")


@check("read.overview", "the overview has issues in other states, and those that are unreadable")
async def overview(rig: Rig) -> None:
    """After a list they are known by their names."""
    needs(rig, Capability.FREE_STATES)
    for name, state in (("A-1", "Todo"), ("A-2", "Backlog"), ("A-3", "Todo")):
        rig.put(make_issue(name, state))
    rig.spoil("A-3")

    candidates = await rig.tracker.fetch_candidates(["todo"])
    known = rig.tracker.overview()

    require_equal([issue.identifier for issue in candidates], ["A-1"], "the list")
    states = {issue.identifier: issue.state for issue in known.issues}
    require_equal(states, {"A-1": "Todo", "A-2": "Backlog"}, "the overview")
    names = [issue.names for issue in known.unreadable]
    require(len(names) == 1 and "A-3" in names[0], f"the unreadable issues are {names}")


@check("read.blockers", "blockers come with the states in which they are now")
async def blockers(rig: Rig) -> None:
    """A known blocker has id and state; an unknown or unreadable one has neither."""
    needs(rig, Capability.BLOCKERS)
    rig.put(make_issue("A-1", blocked_by=(Blocker(identifier="A-2"), Blocker(identifier="A-3"))))
    rig.put(make_issue("A-2"))

    first = await rig.tracker.fetch_candidates(["todo"])
    await rig.tracker.transition(make_issue("A-2"), "Done")
    second = await read_one(rig, "A-1")
    rig.spoil("A-2")
    third = await read_one(rig, "A-1")

    unknown, known = Blocker(identifier="A-3"), Blocker(identifier="A-2", id=IssueId("A-2"))
    found = next(issue for issue in first if issue.id == "A-1").blocked_by
    require_equal(found, (replace(known, state="Todo"), unknown), "the blockers in a list")
    wanted = (replace(known, state="Done"), unknown)
    require_equal(second.blocked_by, wanted, "the blockers after one has moved")
    wanted = (Blocker(identifier="A-2"), unknown)
    require_equal(third.blocked_by, wanted, "the blockers of which one is unreadable")


@check("read.reload", "states that a reload names are told apart at once")
async def reloaded_states(rig: Rig) -> None:
    """After ``configure`` issues are read, listed and moved by the new names."""
    states = TrackerStates(active=("Ready",), terminal=("Shipped",), handoff="Check")
    rig.tracker.configure(states)
    rig.put(make_issue("A-1", "Ready"))

    (ready,) = await rig.tracker.fetch_candidates(["ready"])
    checked = await rig.tracker.transition(ready, "Check")
    shipped = await rig.tracker.transition(checked, "Shipped")

    found = (ready.state, checked.state, shipped.state)
    require_equal(found, ("Ready", "Check", "Shipped"), "the states")
    require_equal(len(await rig.tracker.fetch_candidates(["Ready"])), 0, "issues in Ready")
