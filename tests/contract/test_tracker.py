"""What every tracker does, whatever it is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest
import trio

from sortie.model import (
    Blocker,
    Comment,
    Issue,
    IssueId,
    Sighting,
    TrackerError,
    TrackerErrorKind,
)
from sortie.trackers import ADAPTERS, IssuesRead, Tracker, TrackerContext
from tests.trackers.fake import FakeTracker

THEN = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Rig(Protocol):
    """A tracker, and the world's hands on its issues."""

    tracker: Tracker

    def put(self, issue: Issue) -> None: ...
    def lose(self, issue_id: str) -> None: ...
    def spoil(self, issue_id: str) -> None: ...
    def fail(self) -> None: ...
    def recover(self) -> None: ...


class FakeRig:
    def __init__(self, _directory: Path) -> None:
        self._fake = FakeTracker()
        self.tracker: Tracker = self._fake

    def put(self, issue: Issue) -> None:
        self._fake.unreadable.pop(issue.id, None)
        self._fake.put(issue)

    def lose(self, issue_id: str) -> None:
        self._fake.lose(issue_id)

    def spoil(self, issue_id: str) -> None:
        self._fake.unreadable[IssueId(issue_id)] = TrackerErrorKind.INVALID

    def fail(self) -> None:
        self._fake.down = TrackerErrorKind.UNAVAILABLE

    def recover(self) -> None:
        self._fake.down = None


class MarkdownRig:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "issues"
        self._path.mkdir()
        self.tracker = _file_tracker(self._path)

    def put(self, issue: Issue) -> None:
        fields = _fields(issue)
        body = fields.pop("description")
        front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in fields.items())
        self._file(issue.id).write_text(f"---\n{front}---\n{body}", encoding="utf-8")

    def lose(self, issue_id: str) -> None:
        self._file(issue_id).unlink()

    def spoil(self, issue_id: str) -> None:
        self._file(issue_id).write_text("---\nstate: [\n---\n", encoding="utf-8")

    def fail(self) -> None:
        self._path.rename(self._path.with_name("elsewhere"))

    def recover(self) -> None:
        self._path.with_name("elsewhere").rename(self._path)

    def _file(self, issue_id: str) -> Path:
        return self._path / f"{re.sub('[^A-Za-z0-9]', '-', issue_id).lstrip('-') or 'x'}.md"


class JsonRig:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "issues.json"
        self._path.write_text("[]", encoding="utf-8")
        self.tracker = _file_tracker(self._path)

    def put(self, issue: Issue) -> None:
        self._store(issue.id, _fields(issue))

    def lose(self, issue_id: str) -> None:
        self._store(issue_id, None)

    def spoil(self, issue_id: str) -> None:
        self._store(issue_id, {"id": issue_id, "state": 7})

    def fail(self) -> None:
        self._path.write_text(self._path.read_text("utf-8") + "]", encoding="utf-8")

    def recover(self) -> None:
        self._path.write_text(self._path.read_text("utf-8")[:-1], encoding="utf-8")

    def _store(self, issue_id: str, fields: Mapping[str, object] | None) -> None:
        listed = {item["id"]: item for item in json.loads(self._path.read_text("utf-8"))}
        listed.pop(issue_id, None)
        items = [*listed.values(), *([fields] if fields is not None else [])]
        self._path.write_text(json.dumps(items), encoding="utf-8")


class _NoSightings:
    async def sight(self, digests: Mapping[str, str]) -> Mapping[str, Sighting]:
        return {issue_id: Sighting(first_seen=THEN, changed_at=THEN) for issue_id in digests}


def _file_tracker(path: Path) -> Tracker:
    adapter = ADAPTERS.load("file")
    settings = adapter.block.model_validate({"path": str(path)})
    return adapter.create(
        TrackerContext(settings=settings, directory=path.parent, sightings=_NoSightings())
    )


def _fields(issue: Issue) -> dict[str, object]:
    return {
        "id": issue.id,
        "identifier": issue.identifier,
        "title": issue.title,
        "state": issue.state,
        "description": issue.description,
        "priority": issue.priority,
        "url": issue.url,
        "labels": list(issue.labels),
        "assignee": issue.assignee,
        "issue_type": issue.issue_type,
        "branch_name": issue.branch_name,
        "parent": issue.parent,
        "blocked_by": [blocker.identifier for blocker in issue.blocked_by],
        "comments": [
            {
                "author": comment.author,
                "body": comment.body,
                "created_at": comment.created_at and comment.created_at.isoformat(),
            }
            for comment in issue.comments
        ],
        "created_at": issue.created_at and issue.created_at.isoformat(),
        "updated_at": issue.updated_at and issue.updated_at.isoformat(),
    }


def make(issue_id: str, state: str = "Todo", **changes: object) -> Issue:
    plain = Issue(
        id=IssueId(issue_id),
        identifier=issue_id,
        title=f"Title of {issue_id}",
        state=state,
        created_at=THEN,
        updated_at=THEN,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


@pytest.fixture(params=[MarkdownRig, JsonRig, FakeRig], ids=["directory", "json", "fake"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    build: Callable[[Path], Rig] = request.param
    return build(tmp_path)


async def test_lists_hold_the_issues_in_the_states_asked_for(rig: Rig) -> None:
    """States are compared trimmed and case-folded; other issues stay out; no state, no issue."""
    rig.put(make("A-1", "To Do"))
    rig.put(make("A-2", "In Progress"))
    rig.put(make("A-3", "Done"))

    candidates = await rig.tracker.fetch_candidates([" to do", "IN PROGRESS "])
    done = await rig.tracker.fetch_by_states({"done"})
    none = await rig.tracker.fetch_candidates([])

    assert {issue.id: issue.state for issue in candidates} == {
        "A-1": "To Do",
        "A-2": "In Progress",
    }
    assert list(done) == [make("A-3", "Done")]
    assert list(none) == []


async def test_every_field_arrives_as_it_was_written(rig: Rig) -> None:
    """An issue is the same value after its way through the tracker, in lists and re-reads."""
    blocker = make("A-9", "Done")
    whole = make(
        "17",
        identifier="A-1",
        title="Größe: 'quoted' \"twice\" # not a comment",
        description="First line\n\n    code: |\n---\n{{ 7*7 }} 😀",
        priority=2,
        url="https://example.org/A-1",
        labels=("backend", "Good First Issue"),
        assignee="ann",
        issue_type="bug",
        branch_name="fix/a-1",
        parent="A-0",
        comments=(
            Comment(author="ann", body="one\n\n  two\n", created_at=THEN),
            Comment(author="bob", body="three"),
        ),
        blocked_by=(Blocker(identifier="A-9", id=IssueId("A-9"), state="Done"),),
    )
    rig.put(blocker)
    rig.put(whole)

    listed = await rig.tracker.fetch_candidates(["todo"])
    read = await rig.tracker.fetch_by_ids([IssueId("17")])

    assert list(listed) == [whole]
    assert read == IssuesRead(issues=(whole,))


async def test_a_reread_finds_issues_in_any_state_and_leaves_out_the_missing(rig: Rig) -> None:
    """An id that is not there is in neither field of the answer, and is no error."""
    rig.put(make("A-1", "Done"))

    read = await rig.tracker.fetch_by_ids([IssueId("A-1"), IssueId("A-2"), IssueId("A-1")])
    nothing = await rig.tracker.fetch_by_ids([])

    assert read == IssuesRead(issues=(make("A-1", "Done"),))
    assert nothing == IssuesRead()


async def test_what_people_change_is_seen_by_the_next_call(rig: Rig) -> None:
    """No answer comes from before the question: edits, additions and removals show at once."""
    rig.put(make("A-1"))
    rig.put(make("A-2"))
    before = await rig.tracker.fetch_candidates(["todo"])

    rig.put(make("A-1", title="Another title"))
    rig.lose("A-2")
    rig.put(make("A-3"))
    after = await rig.tracker.fetch_candidates(["todo"])

    assert {issue.id for issue in before} == {"A-1", "A-2"}
    assert {issue.id: issue.title for issue in after} == {
        "A-1": "Another title",
        "A-3": "Title of A-3",
    }


async def test_an_unreadable_issue_hurts_no_other(rig: Rig) -> None:
    """It is skipped in lists, an error of its own on a re-read, and back once it is mended."""
    rig.put(make("A-1"))
    rig.put(make("A-2"))
    rig.spoil("A-1")

    listed = await rig.tracker.fetch_candidates(["todo"])
    read = await rig.tracker.fetch_by_ids([IssueId("A-1"), IssueId("A-2")])
    with pytest.raises(TrackerError) as refused:
        await rig.tracker.transition(make("A-1"), "Done")
    rig.put(make("A-1"))
    mended = await rig.tracker.fetch_by_ids([IssueId("A-1")])

    assert list(listed) == [make("A-2")]
    assert read.issues == (make("A-2"),)
    assert {i: error.kind for i, error in read.failed.items()} == {"A-1": TrackerErrorKind.INVALID}
    assert refused.value.kind is TrackerErrorKind.INVALID
    assert mended == IssuesRead(issues=(make("A-1"),))


async def test_the_overview_holds_what_no_list_gives(rig: Rig) -> None:
    """After a list, issues in any other state and unreadable ones are known, by their names."""
    for name, state in (("A-1", "To Do"), ("A-2", "Backlog"), ("A-3", "To Do")):
        rig.put(make(name, state))
    rig.spoil("A-3")

    listed = await rig.tracker.fetch_candidates(["to do"])
    overview = rig.tracker.overview()

    assert [issue.identifier for issue in listed] == ["A-1"]
    states = {issue.identifier: issue.state for issue in overview.issues}
    assert states == {"A-1": "To Do", "A-2": "Backlog"}
    (unreadable,) = overview.unreadable
    assert "A-3" in unreadable.names


async def test_blockers_come_with_the_states_they_are_in_now(rig: Rig) -> None:
    """A known blocker has id and state, and follows it; an unknown or unreadable one has none."""
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
    before = make("A-1", "Todo", description="Some text", labels=("x",))
    rig.put(before)

    answer = await rig.tracker.transition(before, "In Progress")
    read = await rig.tracker.fetch_by_ids([IssueId("A-1")])

    assert replace(answer, updated_at=THEN) == replace(before, state="In Progress")
    assert read.issues == (answer,)


async def test_a_stale_transition_is_a_conflict_and_changes_nothing(rig: Rig) -> None:
    """Whoever believes the issue to be in another state does not move it."""
    rig.put(make("A-1", "Done"))

    with pytest.raises(TrackerError) as stale:
        await rig.tracker.transition(make("A-1", "Todo"), "In Progress")
    folded = await rig.tracker.transition(make("A-1", " DONE"), "Archived")

    assert stale.value.kind is TrackerErrorKind.CONFLICT
    assert folded.state == "Archived"


async def test_of_many_transitions_from_one_state_one_is_made(rig: Rig) -> None:
    """Concurrent callers with the same belief: one wins, the others are told of a conflict."""
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
            for number in range(8):
                nursery.start_soon(move, f"State {number}")

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
        ("sortie", "first\n\n- {{ 7*7 }}: 'x'"),
    ]
    assert sorted(comment.body for comment in comments[2:]) == [f"more {n}" for n in range(8)]
    assert all(comment.created_at is not None for comment in comments[1:])


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
        lambda: rig.tracker.fetch_by_states(["todo"]),
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
    assert list(after) == [make("A-1")]


@pytest.mark.parametrize(
    "hostile",
    [
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
    ],
)
async def test_hostile_words_stay_harmless_text(rig: Rig, hostile: str) -> None:
    """Identifiers, titles, states and labels made to escape are passed on as what they say."""
    issue = make(hostile, "Todo", title=hostile, labels=(hostile,), description=hostile)
    rig.put(issue)

    listed = await rig.tracker.fetch_candidates(["todo"])
    moved = await rig.tracker.transition(issue, hostile)
    await rig.tracker.comment(moved, hostile)
    read = await rig.tracker.fetch_by_ids([IssueId(hostile)])

    assert list(listed) == [issue]
    assert moved.state == hostile
    assert [comment.body for comment in read.issues[0].comments] == [hostile]
    assert replace(read.issues[0], comments=(), updated_at=THEN) == replace(issue, state=hostile)
