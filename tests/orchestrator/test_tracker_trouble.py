"""A tracker that is down, silent or crashes, and polls that cannot be made."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.model import RunStatus, StopReason, TrackerErrorKind, Trigger, WaitKind
from sortie.orchestrator.context import Readiness
from sortie.telemetry import facts
from tests.agents.fake import Chats, Completes, Silent
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue

DAY = 86_400.0


async def test_an_hour_without_the_tracker(clock: MockClock) -> None:
    """Agents finish, stalls are seen, nothing is lost, and work resumes with the first answer."""
    world = World(
        issue("a"), issue("b"), tracker=HANDOFF, agent={"max_turns": 2, "stall_timeout_ms": 300_000}
    )
    world.agent.scripts["A"] = [Chats(every=100, times=5), Completes()]
    world.agent.scripts["B"] = [Silent(), Completes()]

    async with world.life():
        await world.until(facts.AgentLaunched, 2)
        world.tracker.down = TrackerErrorKind.UNAVAILABLE
        world.tracker.put(issue("c"))
        await trio.sleep(3600)
        before = {row.issue: (row.status, row.turns) for row in await world.history()}
        world.tracker.down = None
        up_at = trio.current_time()
        await world.until(facts.TransitionCompleted, 3)
        done_at = trio.current_time()

    assert before == {"A": (RunStatus.SUCCEEDED, 1), "B": (RunStatus.STALLED, 1)}
    world.tracker.assert_all_in("Review")
    assert done_at - up_at < 40
    waits = {(f.issue.identifier, f.kind, f.trigger) for f in world.of(facts.RetryScheduled)}
    assert waits == {
        ("A", WaitKind.CONTINUATION, Trigger.CONTINUATION),
        ("B", WaitKind.RETRY, Trigger.STALL),
    }
    errors = [f for f in world.of(facts.PollCompleted) if f.result == "error"]
    assert len(errors) >= 100


async def test_a_tracker_that_never_answers_is_given_up(clock: MockClock) -> None:
    """Each request is bounded: the next poll follows, and the loop never waited."""
    world = World(issue(), tracker=HANDOFF)
    world.tracker.delay = DAY

    async with world.life() as orchestrator:
        await world.until(facts.PollCompleted, 2)
        world.tracker.delay = 0
        await world.until(facts.TransitionCompleted)
        assert orchestrator.next_round_at >= trio.current_time()

    assert [f.result for f in world.of(facts.PollCompleted)][:2] == ["error", "error"]
    world.tracker.assert_all_in("Review")


async def test_a_miss_that_cannot_be_confirmed_is_asked_for_at_leisure(clock: MockClock) -> None:
    """An issue that one read missed, and the next ones cannot read, costs no flood of requests."""
    world = World(issue())
    world.agent.scripts["A"] = [Silent()]

    async with world.life():
        await world.until(facts.AgentLaunched)
        world.tracker.lose("a")
        await world.until(facts.TrackerAsked, 2, lambda fact: fact.operation == "fetch_by_ids")
        world.tracker.down = TrackerErrorKind.UNAVAILABLE
        world.tracker.delay = 0.01
        asked = len(world.of(facts.TrackerAsked))
        await trio.sleep(100)
        more = len(world.of(facts.TrackerAsked)) - asked
        world.tracker.down = None
        world.tracker.delay = 0.0
        finished = await world.until(facts.RunFinished)

    assert more < 30
    assert finished.status is RunStatus.CANCELLED
    assert [fact.reason for fact in world.of(facts.RunStopping)] == [StopReason.MISSING]


@pytest.mark.parametrize("method", ["fetch_candidates", "fetch_by_ids", "transition", "comment"])
async def test_a_tracker_that_crashes_is_one_that_does_not_answer(
    clock: MockClock, method: str
) -> None:
    """Any exception out of any method is told with its traceback and survived."""
    world = World(
        issue(),
        tracker={
            **HANDOFF,
            "in_progress_state": "Doing",
            "comments": {"on_dispatch": True, "on_completion": True},
        },
    )
    healthy = getattr(world.tracker, method)

    async def crash(*_args: object, **_kwargs: object) -> object:
        await trio.lowlevel.checkpoint()
        raise LookupError("a bug")

    setattr(world.tracker, method, crash)
    async with world.life():
        await trio.sleep(100)
        setattr(world.tracker, method, healthy)
        await world.until(facts.TransitionCompleted, where=lambda f: f.lifecycle == "handoff")
        await trio.sleep(100)

    world.tracker.assert_all_in("Review")
    crashed = world.of(facts.AdapterCrashed)
    assert {fact.where for fact in crashed} == {method}
    assert all("a bug" in fact.traceback for fact in crashed)


async def test_a_preflight_that_crashes_is_a_failed_poll(clock: MockClock) -> None:
    """The poll is answered, and the next one is made."""
    world = World(issue(), tracker=HANDOFF)
    world.preflight_error = LookupError("a bug")

    async with world.life():
        await world.until(facts.PollCompleted, 2)
        world.preflight_error = None
        await world.until(facts.TransitionCompleted)

    assert [fact.where for fact in world.of(facts.AdapterCrashed)] == ["poll", "poll"]


async def test_a_preflight_fault_skips_dispatch(clock: MockClock) -> None:
    """While runs cannot be recorded or placed nothing is fetched or started; all goes on after."""
    world = World(issue(), tracker=HANDOFF)
    world.readiness = Readiness(fault="the workspace root is read-only")

    async with world.life() as orchestrator:
        await trio.sleep(100)
        skipped = orchestrator.snapshot().skipped
        started = len(world.of(facts.RunStarted))
        asked = {fact.operation for fact in world.of(facts.TrackerAsked)}
        world.readiness = Readiness()
        await world.until(facts.TransitionCompleted)

    assert (skipped, started, asked) == ("the workspace root is read-only", 0, set())
    assert {f.error for f in world.of(facts.PollCompleted) if f.result == "skipped"} == {
        "the workspace root is read-only"
    }


async def test_a_preflight_fault_does_not_stop_reconciliation(clock: MockClock) -> None:
    """What runs is re-read and stopped all the same."""
    world = World(issue())
    world.agent.scripts["A"] = [Silent()]

    async with world.life():
        await world.until(facts.AgentLaunched)
        world.readiness = Readiness(fault="no place")
        world.tracker.edit("a", state="Done")
        finished = await world.until(facts.RunFinished)

    assert finished.status is RunStatus.CANCELLED
    assert [fact.reason for fact in world.of(facts.RunStopping)] == [StopReason.TERMINAL]
