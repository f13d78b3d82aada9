"""What the loop is told of the answers to its questions, one question at a time."""

from __future__ import annotations

import errno

import pytest
import trio
from trio.testing import MockClock

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.orchestrator import OrchestratorContext
from sortie.orchestrator.context import Readiness
from sortie.orchestrator.effects import hand_off, poll, refresh
from sortie.scheduler import Event
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.timing import SHORTAGE_DELAY
from sortie.telemetry import facts
from sortie.trackers import IssuesRead
from tests.orchestrator.world import World
from tests.worker.rig import issue


def context_of(world: World) -> OrchestratorContext:
    async def ready() -> Readiness:
        await trio.lowlevel.checkpoint()
        return world.readiness

    return OrchestratorContext(
        store=world.store,
        tracker=world.tracker,
        publish=world.publish,
        run_context_for=world.run_context_for,
        preflight=ready,
        wall=world.wall,
        compares=world.compares,
    )


@pytest.mark.parametrize(
    "readiness",
    [Readiness(hindrance="the program is missing"), Readiness(shortage="no more threads")],
)
async def test_a_poll_that_can_start_nothing_counts_as_skipped(
    clock: MockClock, readiness: Readiness
) -> None:
    """Its candidates are told of all the same, with what stands in their way."""
    world, told = World(issue("a")), list[Event]()
    world.readiness = readiness

    await poll(context_of(world), ("Todo",), told.append)

    why = readiness.hindrance or readiness.shortage
    (done,) = world.of(facts.PollCompleted)
    assert (done.result, done.candidates, done.error) == ("skipped", 1, why)
    assert [type(event) for event in told] == [ev.CandidatesFetched]


async def test_an_issue_that_could_not_be_read_for_a_limit_rests_the_tracker(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long a tracker wants to be left alone counts as well where it says so of one issue."""
    world, told = World(issue("a")), list[Event]()
    limited = TrackerError(TrackerErrorKind.UNAVAILABLE, "too many requests", retry_after=30.0)

    async def read(ids: frozenset[IssueId]) -> IssuesRead:
        await trio.lowlevel.checkpoint()
        return IssuesRead(issues=(), failed=dict.fromkeys(ids, limited))

    monkeypatch.setattr(world.tracker, "fetch_by_ids", read)

    await refresh(context_of(world), do.Refresh(1, frozenset({issue("a").id})), told.append)

    assert told[0] == ev.TrackerPaused(30.0)
    assert isinstance(told[1], ev.IssuesRefreshed)
    assert told[1].error == "too many requests"


async def test_a_handoff_outlasts_a_shortage_of_this_machine(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again after a pause, and nobody is told of a failure."""
    world, told, tried = World(issue("a")), list[Event](), list[float]()
    transition = world.tracker.transition

    async def short_at_first(moved: Issue, state: str) -> Issue:
        tried.append(trio.current_time())
        if len(tried) == 1:
            unavailable = TrackerError(TrackerErrorKind.UNAVAILABLE, "cannot write")
            raise unavailable from OSError(errno.EMFILE, "Too many open files")
        return await transition(moved, state)

    monkeypatch.setattr(world.tracker, "transition", short_at_first)
    began = trio.current_time()

    question = do.HandOff(token=1, issue=issue("a"), state="Review")
    await hand_off(context_of(world), question, told.append)

    assert [at - began for at in tried] == [0.0, SHORTAGE_DELAY]
    assert told == [ev.TransitionAnswered(issue("a").id, 1, None, "", "Review")]
    world.tracker.assert_all_in("Review")


@pytest.mark.parametrize(("compares", "asked"), [(False, 1), (True, 0)])
async def test_a_tracker_that_compares_is_not_asked_before_a_move(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch, compares: bool, asked: int
) -> None:
    """It moves the issue only where that stands as it is said to; any other is asked first."""
    world, told, asking = World(issue("a")), list[Event](), list[frozenset[IssueId]]()
    world.compares = compares
    fetch = world.tracker.fetch_by_ids

    async def fetch_and_tell(ids: frozenset[IssueId]) -> IssuesRead:
        asking.append(ids)
        return await fetch(ids)

    monkeypatch.setattr(world.tracker, "fetch_by_ids", fetch_and_tell)

    question = do.HandOff(token=1, issue=issue("a"), state="Review")
    await hand_off(context_of(world), question, told.append)

    assert len(asking) == asked
    assert told == [ev.TransitionAnswered(issue("a").id, 1, None, "", "Review")]
    world.tracker.assert_all_in("Review")


@pytest.mark.parametrize("compares", [False, True])
async def test_an_issue_that_was_moved_meanwhile_stays_there(
    clock: MockClock, compares: bool
) -> None:
    """Whoever finds that out."""
    world, told = World(issue("a", state="Elsewhere")), list[Event]()
    world.compares = compares

    question = do.HandOff(token=1, issue=issue("a"), state="Review")
    await hand_off(context_of(world), question, told.append)

    (answer,) = told
    assert isinstance(answer, ev.TransitionAnswered)
    assert answer.error_kind is TrackerErrorKind.CONFLICT
    assert "moved from Todo to Elsewhere" in answer.error
    world.tracker.assert_all_in("Elsewhere")


@pytest.mark.parametrize("compares", [False, True])
async def test_a_move_that_was_made_already_is_completed(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch, compares: bool
) -> None:
    """A tracker in which it takes several steps may have been cut off between two of them."""
    world, told, completed = World(issue("a", state="Review")), list[Event](), list[str]()
    world.compares = compares

    async def complete(moved: Issue) -> None:
        await trio.lowlevel.checkpoint()
        completed.append(moved.state)

    monkeypatch.setattr(world.tracker, "complete_move", complete)

    question = do.HandOff(token=1, issue=issue("a"), state="review")
    await hand_off(context_of(world), question, told.append)

    assert completed == ["Review"]
    assert told == [ev.TransitionAnswered(issue("a").id, 1, None, "", "review")]


async def test_a_poll_tells_when_the_next_one_may_be_made(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where requests are short: after a list, and where lists alone are refused."""
    world, told = World(issue("a")), list[Event]()
    monkeypatch.setattr(world.tracker, "list_pause", lambda: 90.0)
    few = TrackerError(
        TrackerErrorKind.UNAVAILABLE, "few are left", retry_after=600.0, lists_only=True
    )

    async def refuse(states: object) -> tuple[Issue, ...]:
        await trio.lowlevel.checkpoint()
        raise few

    await poll(context_of(world), ("Todo",), told.append)
    monkeypatch.setattr(world.tracker, "fetch_candidates", refuse)
    await poll(context_of(world), ("Todo",), told.append)

    assert isinstance(told[0], ev.CandidatesFetched)
    assert told[1:] == [ev.PollsPutOff(90.0), ev.PollFailed("few are left"), ev.PollsPutOff(600.0)]
