"""One life after another: drained or killed, and gone on with."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.model import RunStatus, Trigger
from sortie.telemetry import facts
from tests.agents.fake import Completes, Fails, Silent
from tests.orchestrator.world import HANDOFF, World
from tests.transports.fake import Does
from tests.worker.rig import issue


async def test_a_drain_interrupts_and_the_next_life_continues(clock: MockClock) -> None:
    """Runs under way are recorded as interrupted, and run again with the same attempt."""
    world = World(issue(), tracker=HANDOFF, hooks={"after_run": Does(seconds=2)})
    world.agent.scripts["A"] = [Fails(), Silent(clings=1), Completes()]

    async with world.life():
        await world.until(facts.AgentLaunched, 2)
    drained_at = trio.current_time()
    between = await world.store.recover()
    async with world.life():
        await world.until(facts.TransitionCompleted)

    rows = [(row.status, row.attempt) for row in await world.history()]
    assert rows == [(RunStatus.FAILED, 0), (RunStatus.INTERRUPTED, 1), (RunStatus.SUCCEEDED, 1)]
    assert [(r.trigger, r.delay) for r in between.retries] == [(Trigger.INTERRUPTED, 0.0)]
    assert world.agent.launched_at[2] - drained_at < 1
    assert len(world.transport.processes_of("after_run")) == 3


async def test_a_handoff_that_ends_after_the_last_run_is_on_record(clock: MockClock) -> None:
    """Else the next life would make it again, over what a person did with the issue meanwhile."""
    world = World(issue(), tracker=HANDOFF)
    world.agent.scripts["A"] = [Completes(does=lambda: setattr(world.tracker, "delay", 1.0))]

    async with world.life():
        await world.until(facts.RunFinished)
        under_way = world.of(facts.TransitionCompleted)
    recovered = await world.store.recover()

    assert under_way == []
    assert [fact.result for fact in world.of(facts.TransitionCompleted)] == ["success"]
    assert recovered.retries == ()


async def test_the_agents_session_goes_on_over_runs_and_lives(clock: MockClock) -> None:
    """A continuation, a retry and the first run after a kill get the last id that was told."""
    world = World(issue(), agent={"max_turns": 1})
    world.agent.session_ids = ["s-1", "s-2"]
    world.agent.scripts["A"] = [Completes(), Completes(), Fails(), Silent(), Completes()]

    async with world.life_cut_short():
        await world.until(facts.AgentLaunched, 4)
    async with world.life():
        await world.until(facts.AgentLaunched, 5)

    assert world.agent.resumed == [None, "s-1", "s-2", "s-2", "s-2"]


async def test_a_killed_daemons_runs_continue(clock: MockClock) -> None:
    """A life that ended without a word is recorded as interrupted; the attempt stays."""
    world = World(issue(), tracker=HANDOFF)
    world.agent.scripts["A"] = [Fails(), Silent(), Completes()]

    async with world.life_cut_short():
        await world.until(facts.AgentLaunched, 2)
    left = await world.store.recover()
    async with world.life():
        await world.until(facts.TransitionCompleted)

    assert [run.streak.failures for run in left.unfinished] == [1]
    rows = [(row.status, row.attempt) for row in await world.history()]
    assert rows == [(RunStatus.FAILED, 0), (RunStatus.INTERRUPTED, 1), (RunStatus.SUCCEEDED, 1)]


async def test_a_second_kill_in_a_row_is_a_failure(clock: MockClock) -> None:
    """A run that takes the daemon with it twice waits as after a failure, one attempt on."""
    world = World(issue(), tracker=HANDOFF)
    world.agent.scripts["A"] = [Silent(), Silent(), Completes()]

    for life in (1, 2):
        async with world.life_cut_short():
            await world.until(facts.AgentLaunched, life)
    killed_at = trio.current_time()
    async with world.life():
        await world.until(facts.TransitionCompleted)

    assert [(row.status, row.attempt) for row in await world.history()] == [
        (RunStatus.INTERRUPTED, 0),
        (RunStatus.INTERRUPTED, 0),
        (RunStatus.SUCCEEDED, 1),
    ]
    assert world.agent.launched_at[2] - killed_at == pytest.approx(10, abs=0.01)
