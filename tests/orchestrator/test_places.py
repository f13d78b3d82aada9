"""A workspace root that goes and comes back, and a look at it that does not return."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.daemon.state_view import POLL_LIMIT
from sortie.model import ErrorKind, HoldReason, RunStatus, StopReason, TransportError
from sortie.orchestrator.context import Readiness
from sortie.scheduler import policy_of
from sortie.telemetry import facts
from tests.agents.fake import Completes, Silent
from tests.orchestrator.daemon_view import view_of
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import ROOT, issue


class DeadMount(World):
    """A world in which the look at the workspace root hangs until it is ``mounted``."""

    mounted: trio.Event | None = None

    async def _preflight(self) -> Readiness:
        if self.mounted is not None:
            await self.mounted.wait()
        return await super()._preflight()


GONE = TransportError("no such directory")


async def test_a_root_that_goes_between_two_turns_holds_its_runs(clock: MockClock) -> None:
    """No turn is begun outside; the issue is held, nothing else starts, and a reload after the
    root is back lets everything run."""
    world = World(issue("a"), tracker=HANDOFF, agent={"max_turns": 3})
    world.agent.scripts["A"] = [Completes(after=10)]

    async with world.life() as orchestrator:
        await world.until(facts.AgentLaunched)
        before = set(world.transport.files.directories)
        world.transport.files.directories = {d for d in before if not d.startswith(ROOT)}
        world.readiness = Readiness(fault="the root is gone")
        world.tracker.put(issue("b"))
        held = await world.until(facts.IssueHeld)
        await trio.sleep(600)
        launched = len(world.agent.launched_at)
        world.transport.files.directories, world.readiness = before, Readiness()
        orchestrator.apply(world.settings, policy_of(world.settings))
        await world.until(facts.TransitionCompleted, 2)

    assert (held.reason, launched) == (HoldReason.INVALID_WORKSPACE_CWD, 1)
    first = (await world.history())[0]
    assert (first.issue, first.status, first.error_kind) == (
        "A",
        RunStatus.FAILED,
        ErrorKind.INVALID_WORKSPACE_CWD,
    )
    world.tracker.assert_all_in("Review")


@pytest.mark.parametrize("method", ["make_directory", "write_file"])
async def test_a_root_that_nothing_can_be_written_to_costs_no_attempt(
    clock: MockClock, method: str
) -> None:
    """Until a poll notices the fault, runs end without being counted; then none begins."""
    world = World(issue("a"), issue("b"), tracker=HANDOFF, polling={"interval_ms": 30_000})
    world.transport.faults[method] = GONE

    async with world.life():
        await trio.sleep(25)
        world.readiness = Readiness(fault=str(GONE))
        await trio.sleep(3600)
        tries = await world.history()
        world.transport.faults.clear()
        world.readiness = Readiness()
        await world.until(facts.TransitionCompleted, 2)

    assert {row.error_kind for row in tries} == {ErrorKind.WORKSPACE_ERROR}
    assert 2 <= len(tries) <= 8
    assert {row.attempt for row in await world.history()} == {0}
    world.tracker.assert_all_in("Review")


async def test_a_look_that_hangs_is_shown_and_holds_up_no_run(clock: MockClock) -> None:
    """A preflight that never returns, as on a dead mount, makes the daemon not ready; what runs
    is still re-read, stopped and retried, and the next poll follows when it returns."""
    world = DeadMount(issue("a"), tracker=HANDOFF, agent={"stall_timeout_ms": 0})
    world.agent.scripts["A"] = [Silent()]

    async with world.life() as orchestrator:
        view = view_of(orchestrator)
        await world.until(facts.AgentLaunched)
        world.mounted = trio.Event()
        await trio.sleep(30 + POLL_LIMIT - 10)
        soon = view.health()
        await trio.sleep(100)
        late = view.health()
        world.tracker.edit("a", state="Backlog")
        finished = await world.until(facts.RunFinished)
        world.mounted.set()
        world.tracker.put(issue("b"))
        await world.until(facts.TransitionCompleted)
        after = view.health()

    assert (soon.ready, after.ready) == (True, True)
    assert (late.ready, late.overdue) == (False, 0.0)
    assert "the poll under way has taken" in late.reasons[0]
    assert finished.status is RunStatus.CANCELLED
    assert [fact.reason for fact in world.of(facts.RunStopping)] == [StopReason.INACTIVE]
