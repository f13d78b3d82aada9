"""A tracker that is down, silent or crashes, and polls that cannot be made."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.orchestrator.context import Readiness
from sortie.telemetry import facts
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue

DAY = 86_400.0


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
