"""The fake tracker fails when it is told to, and its verdicts can find someone guilty."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.trackers import IssuesRead
from tests.trackers.fake import FakeTracker, Moved

A = Issue(id=IssueId("A"), identifier="A-1", title="t", state="Todo")
B = Issue(id=IssueId("B"), identifier="B-1", title="t", state="Done")


async def test_switches_fail_what_they_name_and_nothing_else() -> None:
    """Writes can fail for all issues or one, with the kind asked for; nothing is changed then."""
    fake = FakeTracker([A, B])
    fake.transitions_fail = TrackerErrorKind.PERMISSION
    fake.writes_fail[B.id] = TrackerErrorKind.NOT_FOUND

    with pytest.raises(TrackerError) as move:
        await fake.transition(A, "Done")
    with pytest.raises(TrackerError) as remark:
        await fake.comment(B, "hello")
    await fake.comment(A, "hello")

    assert move.value.kind is TrackerErrorKind.PERMISSION
    assert remark.value.kind is TrackerErrorKind.NOT_FOUND
    assert fake.states() == {"A-1": "Todo", "B-1": "Done"}
    assert (fake.remarks("A"), fake.remarks("B")) == (("hello",), ())


async def test_a_slow_answer_is_of_the_time_of_the_question(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """What changes while a read is under way is not in its answer."""
    fake = FakeTracker([A])
    fake.delay = 60.0
    answers: list[IssuesRead] = []

    async def ask() -> None:
        answers.append(await fake.fetch_by_ids([A.id]))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.sleep(30)
        fake.edit("A", state="Done")

    assert answers == [IssuesRead(issues=(A,))]
    assert trio.current_time() >= 60


async def test_a_lost_issue_can_be_found_again() -> None:
    """While lost it is missing everywhere; then it is as it was."""
    fake = FakeTracker([A])

    fake.lose("A")
    lost = await fake.fetch_by_ids([A.id])
    fake.find_again("A")
    found = await fake.fetch_candidates(["todo"])

    assert lost == IssuesRead()
    assert list(found) == [A]


async def test_an_outage_has_the_kind_and_the_wait_it_was_given() -> None:
    """A rate limit can be told with its ``retry_after``."""
    fake = FakeTracker([A])
    fake.down, fake.retry_after = TrackerErrorKind.UNAVAILABLE, 30.0

    with pytest.raises(TrackerError) as failed:
        await fake.fetch_candidates(["todo"])

    assert (failed.value.kind, failed.value.retry_after) == (TrackerErrorKind.UNAVAILABLE, 30.0)


async def test_verdicts_tell_right_from_wrong() -> None:
    """Each verdict passes for what happened and fails for what did not."""
    fake = FakeTracker([A, B])
    moved = await fake.transition(A, "In Progress")
    await fake.transition(moved, "Review")
    fake.edit("B", state="Todo")

    assert fake.journey("A") == ("Todo", "In Progress", "Review")
    assert fake.moves == [
        Moved(identifier="A-1", before="Todo", after="In Progress"),
        Moved(identifier="A-1", before="In Progress", after="Review"),
    ]
    fake.assert_all_in("review", "todo")
    fake.assert_never_moved_from("done")
    with pytest.raises(AssertionError, match="B-1"):
        fake.assert_all_in("review")
    with pytest.raises(AssertionError, match="A-1"):
        fake.assert_never_moved_from("TODO")
