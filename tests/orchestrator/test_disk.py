"""Records come before acts: what the loop does while the disk fails."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.model import RunStatus, StoreError, TurnOutcome
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from tests.agents.fake import Chats, Silent
from tests.orchestrator.world import HANDOFF, World
from tests.transports.fake import Does
from tests.worker.rig import ROOT, issue


async def test_nothing_is_performed_while_the_disk_fails(clock: MockClock) -> None:
    """Runs under way go on; what is decided waits for the disk and is performed then, once."""
    world = World(issue("a"), tracker=HANDOFF, agent={"max_concurrent_agents": 9})
    world.agent.scripts["A"] = [Chats(every=1, times=50)]

    async with world.life() as orchestrator:
        await world.until(facts.AgentLaunched)
        world.store.failing = StoreError("disk full")
        world.tracker.put(issue("b"))
        orchestrator.tell(ev.RefreshRequested())
        await trio.sleep(200)
        begun = list(world.agent.begun)
        ended = [f.outcome for f in world.of(facts.TurnCompleted)]
        told = [len(world.of(kind)) for kind in (facts.RunStarted, facts.RunFinished)]
        states, error = world.tracker.states(), orchestrator.store_error
        world.store.failing = None
        await world.until(facts.TransitionCompleted, 2)
        healed = orchestrator.store_error

    assert [name for name, _ in begun] == ["A"]
    assert ended == [TurnOutcome.COMPLETED]
    assert told == [1, 0]
    assert states == {"A": "Todo", "B": "Todo"}
    assert (error, healed) == ("disk full", None)
    assert [row.status for row in await world.history()] == [RunStatus.SUCCEEDED] * 2
    assert world.tracker.states() == {"A": "Review", "B": "Review"}
    assert len(world.of(facts.StoreRecovered)) == 1
    assert [name for name, _ in world.agent.begun] == ["A", "B"]


async def test_a_turn_is_on_disk_before_its_agent_is_launched(clock: MockClock) -> None:
    """At the moment of the launch the store knows the run, its workspace and the turn."""
    world = World(issue(), tracker=HANDOFF, agent={"max_turns": 2})
    seen: list[tuple[int, str | None, RunStatus]] = []

    async def look(_params: object) -> None:
        (row,) = await world.store.history()
        seen.append((row.turns, row.workspace, row.status))

    world.agent.before_launch = look

    async with world.life():
        await world.until(facts.RunFinished)

    where = f"{ROOT}/A"
    assert seen == [(1, where, RunStatus.RUNNING), (2, where, RunStatus.RUNNING)]


async def test_a_turn_waits_for_the_disk(clock: MockClock) -> None:
    """A worker whose turn cannot be recorded launches nothing until it is."""
    world = World(issue(), tracker=HANDOFF, hooks={"before_run": Does(seconds=10)})

    async with world.life():
        await world.until(facts.WorkspaceReady)
        world.store.failing = StoreError("disk full")
        await trio.sleep(100)
        launched = list(world.agent.launched_at)
        world.store.failing = None
        await world.until(facts.RunFinished)

    assert launched == []
    assert len(world.agent.launched_at) == 1


async def test_a_store_without_an_answer_holds_nothing_up_but_starts(clock: MockClock) -> None:
    """An issue that is finished in the tracker is noticed, and its run is ended; what was decided
    is performed when the answer comes."""
    world = World(issue("a"), tracker=HANDOFF, agent={"max_concurrent_agents": 9})
    world.agent.scripts["A"] = [Silent()]

    async with world.life() as orchestrator:
        await world.until(facts.AgentLaunched)
        world.store.silent = trio.Event()
        world.tracker.put(issue("b"))
        orchestrator.tell(ev.PauseAsked(True))
        orchestrator.tell(ev.PauseAsked(False))
        await trio.sleep(1)
        world.tracker.put(issue("a", state="Done"))
        orchestrator.tell(ev.RefreshRequested())
        await world.until(facts.TurnCompleted)
        begun, error = list(world.agent.begun), orchestrator.store_error
        world.store.silent.set()
        world.store.silent = None
        await world.until(facts.TransitionCompleted)

    assert [name for name, _ in begun] == ["A"]
    assert error is None
    assert [name for name, _ in world.agent.begun] == ["A", "B"]
    assert {row.issue: row.status for row in await world.history()} == {
        "A": RunStatus.CANCELLED,
        "B": RunStatus.SUCCEEDED,
    }


async def test_a_stop_without_a_disk_ends_all_the_same(clock: MockClock) -> None:
    """A daemon that is told to go while it cannot write ends its agents and says why."""
    world = World(issue(), hooks={"after_run": Does(seconds=1)})
    world.agent.scripts["A"] = [Silent()]
    orchestrator = await world.born()

    with pytest.raises(ExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(orchestrator.run)
            await world.until(facts.AgentLaunched)
            await trio.sleep(1)
            world.store.failing = StoreError("disk full")
            orchestrator.giving_up = True
            orchestrator.shut_down()

    assert caught.group_contains(StoreError, match="disk full")
    assert [ran.script for ran in world.transport.ran] == ["after_run"]
    world.store.failing = None
    assert [row.status for row in await world.history()] == [RunStatus.RUNNING]
    world.assert_quiet()
