"""People and probes while the disk fails: what is shown, what can be done, what comes of it."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from sortie.daemon.http_server import gauges_of
from sortie.model import HoldReason, RunStatus, StoreError
from sortie.orchestrator import Orchestrator
from sortie.orchestrator.context import Readiness
from sortie.orchestrator.performer import COMMAND_TIMEOUT
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from tests.agents.fake import Chats, Silent
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

    assert (answer.status, waited) == (503, COMMAND_TIMEOUT)
    assert "disk full" in answer.message
    assert (ended, held) == (["cancelled"], [])
    assert hold.reason is HoldReason.OPERATOR
    assert [row.status for row in await world.history()] == [RunStatus.CANCELLED]


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
