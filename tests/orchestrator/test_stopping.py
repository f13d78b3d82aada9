"""Runs that are stopped, by a person or by what the tracker says."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from sortie.model import ErrorKind, HoldReason, RunStatus, StopReason, StoreError
from sortie.scheduler import events as ev
from sortie.scheduler import policy_of
from sortie.scheduler.claims import Held
from sortie.telemetry import facts
from tests.agents.fake import Completes, Silent
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import ROOT, issue, settings_of


async def test_a_stop_that_overtakes_the_start(clock: MockClock) -> None:
    """An issue that is stopped in the same moment that starts it runs nothing."""
    world = World(issue(), tracker={"in_progress_state": "Doing"})
    orchestrator = await world.born()

    def meddle(fact: object) -> None:
        if isinstance(fact, facts.RunStarted):
            orchestrator.tell(ev.StopAsked(fact.issue.id))

    world.sinks.append(meddle)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(orchestrator.run)
        held = await world.until(facts.IssueHeld)
        orchestrator.shut_down()

    assert held.reason is HoldReason.OPERATOR
    assert world.agent.begun == []
    assert [row.status for row in await world.history()] == [RunStatus.CANCELLED]
    assert world.of(facts.TurnStarted) == []


async def test_a_run_can_be_stopped_while_the_disk_fails(clock: MockClock) -> None:
    """What fills the disk may be the agent: it is ended at once, and that is recorded later."""
    world = World(issue(), tracker=HANDOFF)
    world.agent.scripts["A"] = [Silent()]

    async with world.life() as orchestrator:
        await world.until(facts.AgentLaunched)
        world.store.failing = StoreError("disk full")
        orchestrator.tell(ev.PauseAsked(True))
        orchestrator.tell(ev.StopAsked(issue().id))
        await world.until(facts.TurnCompleted)
        stopped_after = trio.current_time()
        await trio.sleep(20)
        told = world.of(facts.IssueHeld)
        world.store.failing = None
        held = await world.until(facts.IssueHeld)

    assert stopped_after < 10
    assert told == []
    assert held.reason is HoldReason.OPERATOR
    assert [row.status for row in await world.history()] == [RunStatus.CANCELLED]


async def test_an_operators_stop_holds_the_issue(clock: MockClock) -> None:
    """The run is cancelled, the issue is held, and a retry lets it run again."""
    world = World(issue(), tracker=HANDOFF)
    world.agent.scripts["A"] = [Silent(), Completes()]

    async with world.life() as orchestrator:
        await world.until(facts.AgentLaunched)
        orchestrator.tell(ev.StopAsked(issue().id))
        await world.until(facts.IssueHeld)
        await trio.sleep(500)
        assert isinstance(orchestrator.snapshot().claims[issue().id], Held)
        orchestrator.tell(ev.RetryAsked(issue().id))
        await world.until(facts.TransitionCompleted)

    rows = [(row.status, row.error_kind, row.attempt) for row in await world.history()]
    assert rows == [
        (RunStatus.CANCELLED, ErrorKind.TURN_CANCELLED, 0),
        (RunStatus.SUCCEEDED, None, 0),
    ]


async def test_an_issue_that_became_inactive_is_stopped(clock: MockClock) -> None:
    """The next tick stops the run, and the workspace stays."""
    world = World(issue())
    world.agent.scripts["A"] = [Silent(clings=3)]

    async with world.life() as orchestrator:
        await world.until(facts.AgentLaunched)
        world.tracker.edit("a", state="Backlog")
        await world.until(facts.RunFinished)
        assert dict(orchestrator.snapshot().claims) == {}

    assert [fact.reason for fact in world.of(facts.RunStopping)] == [StopReason.INACTIVE]
    assert f"{ROOT}/A" in world.transport.directories
    assert world.of(facts.RetryScheduled) == []


async def test_new_states_apply_to_what_runs(clock: MockClock) -> None:
    """After a reload a run's issue may be inactive, and the run goes on no further."""
    world = World(issue(), agent={"max_turns": 50})
    world.agent.scripts["A"] = [Completes(after=20)]
    fewer = settings_of(tracker={"active_states": ["Doing"]})

    async with world.life() as orchestrator:
        await world.until(facts.AgentLaunched)
        orchestrator.apply(fewer, policy_of(fewer))
        finished = await world.until(facts.RunFinished)

    assert finished.turns == 1
    assert world.of(facts.RetryScheduled) == []
