"""What every tracker does, whatever it is made of, and what those do that declare it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from sortie.model import (
    Blocker,
    Comment,
    Issue,
    IssueId,
    TrackerError,
    TrackerErrorKind,
)
from sortie.model.checks import CheckOutcome
from sortie.trackers import ADAPTERS, Capability, IssuesRead, TrackerStates
from sortie.trackers.http.answers import Answer
from sortie.trackers.http.client import HttpClient
from tests.contract.tracker_rig import OPTIONAL_FIELDS, THEN, OpenRig, Rig, make, rigs_of, told_text
from tests.trackers.fake import FakeTracker


class FakeRig:
    """The tracker of other tests."""

    capabilities = frozenset(Capability)
    keeps = OPTIONAL_FIELDS

    def __init__(self) -> None:
        self.tracker = FakeTracker()

    def put(self, issue: Issue) -> None:
        self.tracker.unreadable.pop(issue.id, None)
        self.tracker.put(issue)

    def lose(self, issue_id: str) -> None:
        self.tracker.lose(issue_id)

    def spoil(self, issue_id: str) -> None:
        self.tracker.unreadable[IssueId(issue_id)] = TrackerErrorKind.INVALID

    def fail(self) -> None:
        self.tracker.down = TrackerErrorKind.UNAVAILABLE

    def recover(self) -> None:
        self.tracker.down = self.tracker.retry_after = None

    def limit(self, seconds: int) -> None:
        self.fail()
        self.tracker.retry_after = float(seconds)


@asynccontextmanager
async def _fake(_directory: Path) -> AsyncIterator[Rig]:
    yield FakeRig()


RIGS: Mapping[str, OpenRig] = {"fake": _fake} | {
    f"{kind}-{name}": rig for kind in ADAPTERS.found for name, rig in rigs_of(kind).items()
}


@pytest.fixture(params=RIGS)
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    """Each tracker that there is, opened and empty."""
    async with RIGS[request.param](tmp_path) as opened:
        yield opened


def needs(rig: Rig, *capabilities: Capability) -> None:
    """Skip a test that asks for what the tracker does not declare."""
    if lacking := sorted(set(capabilities) - rig.capabilities):
        pytest.skip(f"it does not declare {', '.join(lacking)}")


def kept(rig: Rig, issue: Issue) -> Issue:
    """Return an issue without what the tracker does not keep."""
    absent: dict[str, Any] = dict.fromkeys(OPTIONAL_FIELDS - rig.keeps, None)
    comments = tuple(replace(c, body=told_text(rig, c.body)) for c in issue.comments)
    description = told_text(rig, issue.description)
    return replace(issue, description=description, comments=comments, **absent)


def listed(rig: Rig, issue: Issue) -> Issue:
    """Return an issue as lists give it."""
    comments = issue.comments if Capability.LIST_COMMENTS in rig.capabilities else ()
    return replace(kept(rig, issue), comments=comments)


@pytest.mark.parametrize("kind", ADAPTERS.found)
def test_every_kind_is_held_to_this_suite(kind: str) -> None:
    """A tracker that is found can be loaded, and somebody has said how to try it."""
    adapter = ADAPTERS.load(kind)

    assert rigs_of(kind), (
        f"tests/trackers/{kind.replace('-', '_')}/rig.py has to hold RIGS, by which this suite "
        f"tries the tracker {adapter.kind!r}; see docs/contributing.md"
    )


async def test_lists_hold_the_issues_in_the_states_asked_for(rig: Rig) -> None:
    """States are compared trimmed and case-folded; other issues stay out; no state, no issue."""
    rig.put(make("A-1", "Todo"))
    rig.put(make("A-2", "In Progress"))
    rig.put(make("A-3", "Done"))

    candidates = await rig.tracker.fetch_candidates([" todo", "IN PROGRESS "])
    done = await rig.tracker.fetch_candidates({"done"})
    none = await rig.tracker.fetch_candidates([])

    assert {issue.id: issue.state for issue in candidates} == {"A-1": "Todo", "A-2": "In Progress"}
    assert list(done) == [listed(rig, make("A-3", "Done"))]
    assert list(none) == []


async def test_a_list_longer_than_any_page_is_whole(rig: Rig) -> None:
    """No issue is lost between pages, and none comes twice."""
    for number in range(150):
        rig.put(make(f"A-{number}"))

    candidates = await rig.tracker.fetch_candidates(["todo"])

    assert sorted(issue.id for issue in candidates) == sorted(f"A-{n}" for n in range(150))


async def test_every_field_arrives_as_it_was_written(rig: Rig) -> None:
    """An issue is the same value after its way through the tracker, in lists and re-reads."""
    whole = make(
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

    assert list(candidates) == [listed(rig, whole)]
    assert read == IssuesRead(issues=(kept(rig, whole),))


async def test_labels_arrive_as_they_were_written(rig: Rig) -> None:
    """They are the tracker's, in lists and re-reads."""
    needs(rig, Capability.LABELS)
    rig.put(make("A-1", labels=("backend", "Good First Issue")))

    (candidate,) = await rig.tracker.fetch_candidates(["todo"])
    read = await rig.tracker.fetch_by_ids([IssueId("A-1")])

    assert candidate.labels == ("backend", "Good First Issue")
    assert read.issues[0].labels == candidate.labels


async def test_a_reread_finds_issues_in_any_state_and_leaves_out_the_missing(rig: Rig) -> None:
    """An id that is not there is in neither field of the answer, and is no error."""
    rig.put(make("A-1", "Done"))

    read = await rig.tracker.fetch_by_ids([IssueId("A-1"), IssueId("A-2"), IssueId("A-1")])
    nothing = await rig.tracker.fetch_by_ids([])

    assert read == IssuesRead(issues=(kept(rig, make("A-1", "Done")),))
    assert nothing == IssuesRead()


async def test_one_issue_is_found_by_identifier_or_id(rig: Rig) -> None:
    """Whatever its state, with its comments; what is not there is None, not an error."""
    remark = Comment(author="ann", body="hello", created_at=THEN)
    whole = make("17", "Done", identifier="A-1", comments=(remark,))
    rig.put(whole)
    rig.put(make("18", identifier="A-2"))

    found = [await rig.tracker.find(name) for name in ("A-1", "17", "A-3", "../x y")]

    assert found == [kept(rig, whole), kept(rig, whole), None, None]


async def test_an_issue_that_cannot_be_read_is_found_and_told_so(rig: Rig) -> None:
    """It is no issue that is not there: the error says what is wrong."""
    rig.put(make("A-1"))
    rig.spoil("A-1")

    with pytest.raises(TrackerError) as told:
        await rig.tracker.find("A-1")

    assert told.value.kind is TrackerErrorKind.INVALID


async def test_what_people_change_is_seen_by_the_next_call(rig: Rig) -> None:
    """No answer comes from before the question: edits, moves and additions show at once."""
    rig.put(make("A-1"))
    rig.put(make("A-2"))
    before = await rig.tracker.fetch_candidates(["todo"])

    rig.put(make("A-1", title="Another title"))
    rig.put(make("A-2", "Done"))
    rig.put(make("A-3"))
    after = await rig.tracker.fetch_candidates(["todo"])

    assert {issue.id for issue in before} == {"A-1", "A-2"}
    assert {issue.id: issue.title for issue in after} == {
        "A-1": "Another title",
        "A-3": "Title of A-3",
    }


async def test_what_is_removed_is_not_there(rig: Rig) -> None:
    """A re-read knows it at once, and the list after it; some lists know it by themselves."""
    rig.put(make("A-1"))
    rig.put(make("A-2"))
    before = await rig.tracker.fetch_candidates(["todo"])

    rig.lose("A-2")
    listed_at_once = await rig.tracker.fetch_candidates(["todo"])
    read = await rig.tracker.fetch_by_ids([IssueId("A-1"), IssueId("A-2")])
    after = await rig.tracker.fetch_candidates(["todo"])

    assert {issue.id for issue in before} == {"A-1", "A-2"}
    if Capability.REMOVALS in rig.capabilities:
        assert {issue.id for issue in listed_at_once} == {"A-1"}
    assert ({issue.id for issue in read.issues}, dict(read.failed)) == ({"A-1"}, {})
    assert {issue.id for issue in after} == {"A-1"}


async def test_an_unreadable_issue_hurts_no_other(rig: Rig) -> None:
    """It is skipped in lists, an error of its own on a re-read, and back once it is mended."""
    rig.put(make("A-1"))
    rig.put(make("A-2"))
    rig.spoil("A-1")

    candidates = await rig.tracker.fetch_candidates(["todo"])
    read = await rig.tracker.fetch_by_ids([IssueId("A-1"), IssueId("A-2")])
    with pytest.raises(TrackerError) as refused:
        await rig.tracker.transition(make("A-1"), "Done")
    rig.put(make("A-1"))
    mended = await rig.tracker.fetch_by_ids([IssueId("A-1")])

    assert list(candidates) == [listed(rig, make("A-2"))]
    assert read.issues == (kept(rig, make("A-2")),)
    assert {i: error.kind for i, error in read.failed.items()} == {"A-1": TrackerErrorKind.INVALID}
    assert refused.value.kind is TrackerErrorKind.INVALID
    assert mended == IssuesRead(issues=(kept(rig, make("A-1")),))


async def test_the_overview_holds_what_no_list_gives(rig: Rig) -> None:
    """After a list, issues in any other state and unreadable ones are known, by their names."""
    needs(rig, Capability.FREE_STATES)
    for name, state in (("A-1", "Todo"), ("A-2", "Backlog"), ("A-3", "Todo")):
        rig.put(make(name, state))
    rig.spoil("A-3")

    candidates = await rig.tracker.fetch_candidates(["todo"])
    overview = rig.tracker.overview()

    assert [issue.identifier for issue in candidates] == ["A-1"]
    states = {issue.identifier: issue.state for issue in overview.issues}
    assert states == {"A-1": "Todo", "A-2": "Backlog"}
    (unreadable,) = overview.unreadable
    assert "A-3" in unreadable.names


async def test_blockers_come_with_the_states_they_are_in_now(rig: Rig) -> None:
    """A known blocker has id and state, and follows it; an unknown or unreadable one has none."""
    needs(rig, Capability.BLOCKERS)
    waiting = make("A-1", blocked_by=(Blocker(identifier="A-2"), Blocker(identifier="A-3")))
    rig.put(waiting)
    rig.put(make("A-2"))

    first = await rig.tracker.fetch_candidates(["todo"])
    await rig.tracker.transition(make("A-2"), "Done")
    second = await rig.tracker.fetch_by_ids([IssueId("A-1")])
    rig.spoil("A-2")
    third = await rig.tracker.fetch_by_ids([IssueId("A-1")])

    unknown = Blocker(identifier="A-3")
    found = next(issue for issue in first if issue.id == "A-1")
    assert found.blocked_by == (
        Blocker(identifier="A-2", id=IssueId("A-2"), state="Todo"),
        unknown,
    )
    assert second.issues[0].blocked_by == (
        Blocker(identifier="A-2", id=IssueId("A-2"), state="Done"),
        unknown,
    )
    assert third.issues[0].blocked_by == (Blocker(identifier="A-2"), unknown)


async def test_a_transition_changes_the_state_and_tells_how_the_issue_stands(rig: Rig) -> None:
    """The answer is the moved issue, and a re-read agrees; nothing but state and time differ."""
    before = make(
        "A-1",
        "Todo",
        description="Some text",
        comments=(Comment(author="ann", body="hello", created_at=THEN),),
    )
    rig.put(before)

    answer = await rig.tracker.transition(before, "In Progress")
    read = await rig.tracker.fetch_by_ids([IssueId("A-1")])

    changed = kept(rig, replace(before, state="In Progress"))
    assert replace(answer, updated_at=changed.updated_at) == changed
    assert read.issues == (answer,)


async def test_a_transition_goes_to_every_state_that_the_settings_name(rig: Rig) -> None:
    """From active through the handoff to terminal and back, and lists agree."""
    issue = make("A-1", "Todo")
    rig.put(issue)
    seen = []

    for state in ("In Progress", "Review", "Done", "Todo", "Dropped", "Review"):
        issue = await rig.tracker.transition(issue, state)
        (found,) = await rig.tracker.fetch_candidates([state])
        seen.append((issue.state, found.state))

    assert seen == [
        (state, state) for state in ("In Progress", "Review", "Done", "Todo", "Dropped", "Review")
    ]


async def test_states_that_a_reload_names_are_told_apart_at_once(rig: Rig) -> None:
    """After ``configure`` issues are read, listed and moved by the new names."""
    states = TrackerStates(active=("Ready",), terminal=("Shipped",), handoff="Check")
    rig.tracker.configure(states)
    rig.put(make("A-1", "Ready"))

    (ready,) = await rig.tracker.fetch_candidates(["ready"])
    checked = await rig.tracker.transition(ready, "Check")
    shipped = await rig.tracker.transition(checked, "Shipped")

    assert (ready.state, checked.state, shipped.state) == ("Ready", "Check", "Shipped")
    assert await rig.tracker.fetch_candidates(["Ready"]) in ([], ())


async def test_a_stale_transition_is_a_conflict_and_changes_nothing(rig: Rig) -> None:
    """Whoever believes the issue to be in another state does not move it."""
    needs(rig, Capability.COMPARE_AND_SET)
    rig.put(make("A-1", "Done"))

    with pytest.raises(TrackerError) as stale:
        await rig.tracker.transition(make("A-1", "Todo"), "In Progress")
    folded = await rig.tracker.transition(make("A-1", " DONE"), "Dropped")

    assert stale.value.kind is TrackerErrorKind.CONFLICT
    assert folded.state == "Dropped"


async def test_of_many_transitions_from_one_state_one_is_made(rig: Rig) -> None:
    """Concurrent callers with the same belief: one wins, the others are told of a conflict."""
    needs(rig, Capability.COMPARE_AND_SET)
    rig.put(make("A-1"))
    kinds: list[TrackerErrorKind | None] = []

    async def move(state: str) -> None:
        try:
            await rig.tracker.transition(make("A-1"), state)
        except TrackerError as error:
            kinds.append(error.kind)
        else:
            kinds.append(None)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for state in islice(cycle(("In Progress", "Review", "Done")), 8):
                nursery.start_soon(move, state)

    assert kinds.count(None) == 1
    assert kinds.count(TrackerErrorKind.CONFLICT) == 7


async def test_comments_are_added_in_order_whatever_the_state(rig: Rig) -> None:
    """A comment needs no particular state, and none is lost, many at a time included."""
    rig.put(make("A-1", "Done", comments=(Comment(author="ann", body="hello"),)))

    await rig.tracker.comment(make("A-1", "Todo"), "first\n\n- {{ 7*7 }}: 'x'")
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(rig.tracker.comment, make("A-1"), f"more {number}")
    read = await rig.tracker.fetch_by_ids([IssueId("A-1")])

    comments = read.issues[0].comments
    assert [(comment.author, comment.body) for comment in comments[:2]] == [
        ("ann", "hello"),
        ("sortie", told_text(rig, "first\n\n- {{ 7*7 }}: 'x'")),
    ]
    assert sorted(comment.body for comment in comments[2:]) == [f"more {n}" for n in range(8)]
    assert all(comment.created_at is not None for comment in comments[1:])


async def test_a_comment_that_may_be_there_is_made_once(rig: Rig) -> None:
    """A later life that does not know how a try ended finds the comment, or makes it."""
    rig.put(make("A-1", "Done"))
    await rig.tracker.comment(make("A-1"), "made before the crash", "run-1:completion")

    for body, key in (
        ("made before the crash", "run-1:completion"),
        ("never made", "run-2:completion"),
        ("never made", "run-2:completion"),
    ):
        await rig.tracker.comment(make("A-1"), body, key, again=True)
    read = await rig.tracker.fetch_by_ids([IssueId("A-1")])

    bodies = [comment.body for comment in read.issues[0].comments]
    assert bodies == ["made before the crash", "never made"]


async def test_writing_to_an_issue_that_is_gone_is_not_found(rig: Rig) -> None:
    """Neither a transition nor a comment brings an issue into being."""
    rig.put(make("A-1"))
    rig.lose("A-1")

    with pytest.raises(TrackerError) as moved:
        await rig.tracker.transition(make("A-1"), "Done")
    with pytest.raises(TrackerError) as said:
        await rig.tracker.comment(make("A-1"), "hello")

    assert moved.value.kind is TrackerErrorKind.NOT_FOUND
    assert said.value.kind is TrackerErrorKind.NOT_FOUND
    assert await rig.tracker.fetch_by_ids([IssueId("A-1")]) == IssuesRead()


async def test_an_outage_fails_every_call_and_ends_by_itself(rig: Rig) -> None:
    """While the tracker is down every call says so of the tracker, of no issue, and gives no empty
    answer; then all works."""
    rig.put(make("A-1"))
    rig.fail()
    kinds: list[TrackerErrorKind] = []

    for call in (
        lambda: rig.tracker.fetch_candidates(["todo"]),
        lambda: rig.tracker.find("A-1"),
        lambda: rig.tracker.fetch_by_ids([IssueId("A-1")]),
        lambda: rig.tracker.transition(make("A-1"), "Done"),
        lambda: rig.tracker.comment(make("A-1"), "hello"),
    ):
        with pytest.raises(TrackerError) as failed:
            await call()
        kinds.append(failed.value.kind)
    rig.recover()
    after = await rig.tracker.fetch_candidates(["todo"])

    assert set(kinds) <= {TrackerErrorKind.UNAVAILABLE, TrackerErrorKind.CLOSED}
    assert len(kinds) == 5
    assert list(after) == [listed(rig, make("A-1"))]


def without_lists(told: Any, odd: Any) -> Any:
    """Return what a tracker says, with something else in the place of each list."""
    if isinstance(told, dict):
        return {key: without_lists(value, odd) for key, value in told.items()}
    return odd if isinstance(told, list) else told


@pytest.mark.parametrize("odd", [{}, None, "", [None], ["a"]], ids=repr)
async def test_what_is_no_list_of_issues_is_an_error_and_never_an_empty_list(
    rig: Rig, odd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy, or a server that is out of order, may answer 200 with anything."""
    rig.put(make("A-1"))
    sent, answers = HttpClient._sent, 0

    async def answer(*args: Any) -> Answer:
        nonlocal answers
        answers += 1
        given = await sent(*args)
        told = without_lists(given.json(), odd)
        return replace(given, content=json.dumps(told).encode(), _parsed=[])

    monkeypatch.setattr(HttpClient, "_sent", answer)
    failed = None
    try:
        await rig.tracker.fetch_candidates(["todo"])
    except TrackerError as exc:
        failed = exc
    if not answers:
        pytest.skip("it is not asked over HTTP by the common client")
    assert failed is not None
    assert failed.kind is TrackerErrorKind.UNAVAILABLE
    with pytest.raises(TrackerError):
        await rig.tracker.find("A-1")


async def test_a_tracker_that_wants_to_be_left_alone_says_for_how_long(rig: Rig) -> None:
    """Every refusal is of the kind that passes, and carries the seconds."""
    needs(rig, Capability.RATE_LIMITS)
    rig.put(make("A-1"))
    rig.limit(17)
    told: list[tuple[TrackerErrorKind, float | None]] = []

    for call in (
        lambda: rig.tracker.fetch_candidates(["todo"]),
        lambda: rig.tracker.find("A-1"),
        lambda: rig.tracker.fetch_by_ids([IssueId("A-1")]),
        lambda: rig.tracker.transition(make("A-1"), "Done"),
        lambda: rig.tracker.comment(make("A-1"), "hello"),
    ):
        with pytest.raises(TrackerError) as failed:
            await call()
        told.append((failed.value.kind, failed.value.retry_after))
    rig.recover()

    assert told == [(TrackerErrorKind.UNAVAILABLE, 17.0)] * 5
    assert len(await rig.tracker.fetch_candidates(["todo"])) == 1


async def test_its_checks_pass_where_all_is_well_and_change_nothing(rig: Rig) -> None:
    """They have names of their own, need only checks before them, and are mere questions."""
    rig.put(make("A-1"))
    before = await rig.tracker.fetch_by_ids([IssueId("A-1")])

    names: list[str] = []
    for check in rig.tracker.checks():
        assert set(check.needs) <= set(names)
        found = await check.ask()
        assert found.outcome is CheckOutcome.OK, found
        assert found.sentence
        names.append(check.name)

    assert names
    assert len(set(names)) == len(names)
    assert await rig.tracker.fetch_by_ids([IssueId("A-1")]) == before


async def test_a_tracker_that_is_down_passes_no_check_that_asks_it(rig: Rig) -> None:
    """The first check fails, and says so as a result or as a TrackerError of the tracker."""
    rig.put(make("A-1"))
    rig.fail()

    first = rig.tracker.checks()[0]
    try:
        outcome = (await first.ask()).outcome
    except TrackerError:
        outcome = CheckOutcome.FAILED

    assert outcome is CheckOutcome.FAILED


async def test_its_budgets_are_told_at_once_and_make_sense(rig: Rig) -> None:
    """Each has a name of its own, and no more is left than its limit, until an aware time."""
    rig.put(make("A-1"))
    await rig.tracker.fetch_candidates(["todo"])

    budgets = rig.tracker.budgets()

    assert len({budget.name for budget in budgets}) == len(budgets)
    for budget in budgets:
        if budget.limit is not None and budget.remaining is not None:
            assert 0 <= budget.remaining <= budget.limit
        assert budget.resets_at is None or budget.resets_at.tzinfo is not None


async def test_a_change_is_told_of(rig: Rig) -> None:
    """``changed`` waits for a change, and returns at one made before it was called again."""
    needs(rig, Capability.CHANGES)
    told = trio.Event()

    async def listen() -> None:
        await rig.tracker.changed()
        told.set()

    with trio.fail_after(30):
        rig.put(make("A-0"))
        await rig.tracker.changed()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await trio.testing.wait_all_tasks_blocked(0.2)
            early = told.is_set()
            rig.put(make("A-1"))
            await told.wait()

    assert not early


HOSTILE = (
    "../x",
    "{{ 7*7 }}",
    "..",
    "-rf",
    "a/../../b",
    "$(reboot)",
    "%s %n",
    "<b>x</b>",
    "yes",
    "~",
    "1e3",
)


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_hostile_words_stay_harmless_text(rig: Rig, hostile: str) -> None:
    """Identifiers, titles and comments made to escape are passed on as what they say."""
    issue = make(hostile, "Todo", title=hostile, description=hostile)
    rig.put(issue)

    candidates = await rig.tracker.fetch_candidates(["todo"])
    moved = await rig.tracker.transition(issue, "Done")
    await rig.tracker.comment(moved, hostile)
    read = await rig.tracker.fetch_by_ids([IssueId(hostile)])

    assert list(candidates) == [listed(rig, issue)]
    assert [comment.body for comment in read.issues[0].comments] == [told_text(rig, hostile)]
    changed = kept(rig, replace(issue, state="Done"))
    assert replace(read.issues[0], comments=(), updated_at=changed.updated_at) == changed


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_hostile_states_and_labels_stay_harmless_text(rig: Rig, hostile: str) -> None:
    """They are words like any others where a tracker takes any word."""
    needs(rig, Capability.FREE_STATES, Capability.LABELS)
    issue = make("A-1", "Todo", labels=(hostile,))
    rig.put(issue)

    moved = await rig.tracker.transition(issue, hostile)

    assert (moved.state, moved.labels) == (hostile, (hostile,))
