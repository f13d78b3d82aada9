"""The loop with everything around it in memory: from a poll to the end of a run."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from sortie.model import RunStatus, TrackerErrorKind
from sortie.orchestrator.context import Readiness
from sortie.telemetry import facts
from tests.agents.fake import Completes
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue


async def test_an_issue_is_worked_on_and_handed_off(clock: MockClock) -> None:
    """Poll, run, record, handoff; then the daemon is idle after two good polls."""
    world = World(issue(), tracker={"in_progress_state": "Doing", **HANDOFF})
    world.agent.scripts["A"] = [Completes(credits=0.5)]

    async with world.life() as orchestrator:
        await orchestrator.idle.wait()
        idle_at = trio.current_time()

    assert world.tracker.journey("a") == ("Todo", "Doing", "Review")
    (row,) = await world.history()
    assert (row.status, row.attempt, row.turns, row.spent.credits) == (
        RunStatus.SUCCEEDED,
        0,
        1,
        0.5,
    )
    assert 60 <= idle_at < 62  # the first two good polls without work, 30 s apart
    finished = world.of(facts.RunFinished)[0]
    assert (finished.issue.state, finished.turns, finished.spent.credits) == ("Doing", 1, 0.5)


async def test_nothing_to_do_is_idle_after_two_polls(clock: MockClock) -> None:
    """A failing poll, or one that could not be made, does not count."""
    world = World()
    world.tracker.down = TrackerErrorKind.UNAVAILABLE

    async with world.life() as orchestrator:
        await trio.sleep(100)
        assert not orchestrator.idle.is_set()
        world.tracker.down = None
        world.readiness = Readiness(fault="the disk is read-only")
        await trio.sleep(100)
        assert not orchestrator.idle.is_set()
        world.readiness = Readiness()
        await orchestrator.idle.wait()

    results = [fact.result for fact in world.of(facts.PollCompleted)]
    assert results == ["error"] * 4 + ["skipped"] * 3 + ["success"] * 2


async def test_many_issues_share_few_slots(clock: MockClock) -> None:
    """Fifty issues run eight at a time, each turn is told once, and all are handed off."""
    world = World(
        *(issue(f"i{n}") for n in range(50)), tracker=HANDOFF, agent={"max_concurrent_agents": 8}
    )

    async with world.life() as orchestrator:
        await orchestrator.idle.wait()

    assert world.agent.most_at_once == 8
    assert len(world.of(facts.TurnCompleted)) == len(world.of(facts.RunFinished)) == 50
    assert len(await world.history()) == 50
    world.tracker.assert_all_in("Review")
