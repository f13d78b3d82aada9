"""A tracker that wants to be left alone, and one that asks for an early poll."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from sortie.facts import Fact
from sortie.model import TrackerErrorKind
from sortie.telemetry import facts
from tests.agents.fake import Chats, Completes, Silent
from tests.orchestrator.daemon_view import view_of
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue


def requests(world: World) -> int:
    """Return how many requests were made."""
    return len(world.of(facts.TrackerAsked))


async def limit(world: World, seconds: float) -> None:
    """Have the tracker refuse all, until it has said for how long, and from then on nothing."""
    world.tracker.down, world.tracker.retry_after = TrackerErrorKind.UNAVAILABLE, seconds
    await world.until(facts.TrackerRested, len(world.of(facts.TrackerRested)) + 1)
    world.tracker.down = world.tracker.retry_after = None


async def test_polls_and_rereads_wait_until_the_tracker_may_be_asked(clock: MockClock) -> None:
    """Nothing is asked before, a poll follows at once, and readiness says until when."""
    world = World(issue("a"))
    world.agent.scripts["A"] = [Silent()]

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.AgentLaunched)
        await limit(world, 200.0)
        await trio.testing.wait_all_tasks_blocked()  # a re-read may have been asked beside the poll
        began, asked = trio.current_time(), requests(world)
        world.tracker.put(issue("b"))
        await trio.sleep(199.0)
        reasons = view.health().reasons
        shown = view.state().tracker
        made_meanwhile = requests(world) - asked
        await world.until(facts.AgentLaunched, 2)
        started = trio.current_time()

    assert made_meanwhile == 0
    assert started - began == pytest.approx(200.0, abs=2.0)
    assert any("the tracker is left alone until" in reason for reason in reasons)
    assert shown.rests_until is not None
    assert shown.rests_because == "the fake tracker is unavailable"


async def test_a_handoff_waits_for_the_tracker_and_counts_no_try(clock: MockClock) -> None:
    """However often it is limited, no issue is held for it, and no agent runs again."""
    world = World(issue("a"), tracker=HANDOFF)
    world.agent.scripts["A"] = [Chats(every=10, times=2), Completes()]

    def limit_handoffs(fact: Fact) -> None:
        if isinstance(fact, facts.AgentLaunched):
            world.tracker.transitions_fail = TrackerErrorKind.UNAVAILABLE
            world.tracker.retry_after = 60.0

    world.sinks.append(limit_handoffs)
    async with world.life():
        await world.until(facts.TrackerRested, 8)
        world.tracker.transitions_fail = world.tracker.retry_after = None
        moved = await world.until(facts.TransitionCompleted, where=lambda f: f.result == "success")

    assert moved.lifecycle == "handoff"
    world.tracker.assert_all_in("Review")
    assert len(world.of(facts.RunStarted)) == 1
    assert world.of(facts.IssueHeld) == []
