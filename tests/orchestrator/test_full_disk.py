"""People and probes while the disk fails: what is shown, what can be done, what comes of it."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.daemon.http_server import gauges_of
from sortie.model import HoldReason, RunStatus, StoreError, TrackerErrorKind
from sortie.orchestrator import Orchestrator
from sortie.orchestrator.context import Readiness
from sortie.orchestrator.pending_commands import PATIENCE
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from tests.agents.fake import Chats, Fails, Silent
from tests.orchestrator.daemon_view import view_of
from tests.orchestrator.world import HANDOFF, World
from tests.transports.fake import Does
from tests.worker.rig import issue

FULL = StoreError("disk full")


async def fill_the_disk(world: World, orchestrator: Orchestrator) -> None:
    """Let the disk fail, and wait until that is noticed."""
    world.store.failing = FULL
    world.readiness = Readiness(fault="disk full")
    orchestrator.tell(ev.PauseAsked(True))
    orchestrator.tell(ev.PauseAsked(False))
    await world.until(facts.StoreFailed)


def free_the_disk(world: World) -> None:
    """Let the disk work again."""
    world.store.failing = None
    world.readiness = Readiness()


async def test_a_full_disk_is_shown_and_mends_itself(clock: MockClock) -> None:
    """Readiness and the gauge say so, liveness does not mind, and nothing needs a restart."""
    world = World(issue("a"), tracker=HANDOFF)
    world.agent.scripts["A"] = [Chats(every=10, times=100)]

    async with world.life() as orchestrator:
        view = view_of(orchestrator)
        await world.until(facts.AgentLaunched)
        before = gauges_of(view).store_writable
        await fill_the_disk(world, orchestrator)
        world.tracker.put(issue("b"))
        await trio.sleep(600)
        full, gauges, started = view.health(), gauges_of(view), len(world.of(facts.RunStarted))
        free_the_disk(world)
        await world.until(facts.TransitionCompleted, 2)
        after, writable = view.health(), gauges_of(view).store_writable

    assert (before, gauges.store_writable, writable) == (True, False, True)
    assert (full.ready, full.reasons) == (False, ("disk full",))
    assert full.overdue <= 1.0
    assert (started, gauges.sessions_running) == (1, 1)
    assert after.ready
    assert [row.status for row in await world.history()] == [RunStatus.SUCCEEDED] * 2


async def test_an_operators_stop_works_at_once_and_is_pending(clock: MockClock) -> None:
    """The agent is ended; the answer says 503 and why; the hold is on record with the disk."""
    world = World(issue(), tracker=HANDOFF)
    world.agent.scripts["A"] = [Silent()]

    async with world.life() as orchestrator:
        controls = view_of(orchestrator)
        await world.until(facts.AgentLaunched)
        await fill_the_disk(world, orchestrator)
        began = trio.current_time()
        answer = await controls.stop("A")
        waited = trio.current_time() - began
        ended = [fact.outcome for fact in world.of(facts.TurnCompleted)]
        await trio.sleep(60)
        held = world.of(facts.IssueHeld)
        free_the_disk(world)
        await world.until(facts.IssueHeld)
        (hold,) = (await world.store.recover()).holds

    assert (answer.status, waited) == (503, PATIENCE)
    assert "disk full" in answer.message
    assert (ended, held) == (["cancelled"], [])
    assert hold.reason is HoldReason.OPERATOR
    assert [row.status for row in await world.history()] == [RunStatus.CANCELLED]


@pytest.mark.parametrize("command", ["pause", "retry", "stop"])
async def test_a_command_that_could_not_be_recorded_has_no_effect_after_a_kill(
    clock: MockClock, command: str
) -> None:
    """The 503 says so: what was asked while the disk was full is gone with the daemon, and what
    was recorded before is as it was."""
    world = World(issue())
    world.agent.scripts["A"] = [Fails(), Silent()]

    async with world.life_cut_short() as orchestrator:
        controls = view_of(orchestrator)
        await world.until(facts.RetryScheduled)
        before = await world.store.recover()
        await fill_the_disk(world, orchestrator)
        answer = await (controls.pause() if command == "pause" else getattr(controls, command)("A"))
    free_the_disk(world)

    assert answer.status == 503
    assert "unless the daemon is restarted before" in answer.message
    assert await world.store.recover() == before


async def test_a_kill_while_the_disk_is_full_loses_no_run(clock: MockClock) -> None:
    """What could not be recorded of a run is made up for by the next start: it is interrupted,
    its attempt stays, and the issue is finished."""
    world = World(issue(), tracker=HANDOFF, hooks={"after_run": Does(seconds=1)})
    world.agent.scripts["A"] = [Chats(every=10, times=3)]

    async with world.life_cut_short() as orchestrator:
        await world.until(facts.AgentLaunched)
        await fill_the_disk(world, orchestrator)
        await trio.sleep(100)  # the run is over, and nobody could write that down
        finished = world.of(facts.RunFinished)
    free_the_disk(world)
    async with world.life():
        await world.until(facts.TransitionCompleted)

    assert finished == []
    assert [(row.status, row.attempt) for row in await world.history()] == [
        (RunStatus.INTERRUPTED, 0),
        (RunStatus.SUCCEEDED, 0),
    ]
    world.tracker.assert_all_in("Review")


async def test_what_the_tracker_says_ends_a_run_without_a_disk(clock: MockClock) -> None:
    """An issue that a person finishes while nothing can be written frees its agent all the same,
    and its workspace goes once that is on record."""
    world = World(issue(), tracker=HANDOFF)
    world.agent.scripts["A"] = [Silent()]

    async with world.life() as orchestrator:
        await world.until(facts.AgentLaunched)
        await fill_the_disk(world, orchestrator)
        world.tracker.edit("a", state="Done")
        await world.until(facts.TurnCompleted)
        removed = world.of(facts.WorkspaceRemoved)
        free_the_disk(world)
        await world.until(facts.WorkspaceRemoved)

    assert removed == []
    assert [row.status for row in await world.history()] == [RunStatus.CANCELLED]


async def test_disk_and_tracker_may_fail_together(clock: MockClock) -> None:
    """An hour without either: the runs end, nothing is lost, and all is made up for after."""
    world = World(issue("a"), issue("b"), tracker=HANDOFF)
    world.agent.scripts["A"] = [Chats(every=10, times=3)]
    world.agent.scripts["B"] = [Silent(), Chats(every=1, times=1)]

    async with world.life() as orchestrator:
        view = view_of(orchestrator)
        await world.until(facts.AgentLaunched, 2)
        await fill_the_disk(world, orchestrator)
        world.tracker.down = TrackerErrorKind.UNAVAILABLE
        await trio.sleep(3600)
        reasons = view.health().reasons
        outcomes = sorted(fact.outcome for fact in world.of(facts.TurnCompleted))
        world.tracker.down = None
        await trio.sleep(60)
        free_the_disk(world)
        await world.until(facts.TransitionCompleted, 2)

    assert reasons[0] == "disk full"
    assert outcomes == ["completed", "stalled"]
    world.tracker.assert_all_in("Review")
    assert sorted(row.attempt for row in await world.history()) == [0, 0, 0, 1]
