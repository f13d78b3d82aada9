"""Runs that are stopped, by a person or by what the tracker says."""

from __future__ import annotations

from collections.abc import Collection

import pytest
import trio
from trio.testing import MockClock

from sortie.model import HoldReason, IssueId, RunStatus, StopReason, StoreError
from sortie.scheduler import events as ev
from sortie.scheduler import policy_of
from sortie.telemetry import facts
from sortie.trackers import IssuesRead
from tests.agents.fake import Completes, Silent
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue, settings_of


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
    assert world.of(facts.TurnBegan) == []


async def test_a_stop_waits_with_the_start_that_waits_for_its_record(clock: MockClock) -> None:
    """A run that was decided upon while the disk failed is started and stopped in this order when
    it works again: the stop reaches a worker that has not taken its first step."""
    world = World(issue(), tracker={"in_progress_state": "Doing"})

    def fill_the_disk(fact: object) -> None:
        if isinstance(fact, facts.TrackerAsked) and fact.operation == "fetch_by_ids":
            world.store.failing = StoreError("disk full")

    world.sinks.append(fill_the_disk)
    async with world.life() as orchestrator:
        await world.until(facts.StoreFailed)
        orchestrator.tell(ev.StopAsked(issue().id))
        await trio.sleep(20)
        done = [fact for fact in world.facts if isinstance(fact, facts.RunStopping)]
        world.sinks.remove(fill_the_disk)
        world.store.failing = None
        held = await world.until(facts.IssueHeld)
        await world.until(facts.RunFinished)

    told = [type(f) for f in world.facts if isinstance(f, facts.RunStarted | facts.RunStopping)]
    assert done == []
    assert told == [facts.RunStarted, facts.RunStopping]
    assert held.reason is HoldReason.OPERATOR
    assert world.agent.begun == []
    assert world.tracker.journey("a") == ("Todo",)
    assert [row.status for row in await world.history()] == [RunStatus.CANCELLED]


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


async def test_states_that_a_reload_adds_apply_to_what_runs(clock: MockClock) -> None:
    """A run goes on where its issue is moved to a state that became active meanwhile."""
    world = World(issue(), agent={"max_turns": 2})
    world.agent.scripts["A"] = [Completes(after=20), Completes()]
    more = settings_of(tracker={"active_states": ["Todo", "Later"]}, agent={"max_turns": 2})

    async with world.life() as orchestrator:
        await world.until(facts.AgentLaunched)
        orchestrator.apply(more, policy_of(more))
        world.tracker.edit("a", state="Later")
        finished = await world.until(facts.RunFinished)
        orchestrator.tell(ev.StopAsked(issue().id))

    assert (finished.status, finished.turns) == (RunStatus.SUCCEEDED, 2)


@pytest.mark.parametrize(
    ("state", "reason"), [("Done", StopReason.TERMINAL), ("Backlog", StopReason.INACTIVE)]
)
async def test_an_agent_that_closes_its_issue_finishes_its_turn(
    clock: MockClock, state: str, reason: StopReason
) -> None:
    """The run is recorded as a success, however many polls see the issue closed meanwhile; one
    that goes on and on is stopped."""
    world = World(issue(), issue("b"), polling={"interval_ms": 1000}, agent={"max_turns": 5})
    world.agent.scripts["A"] = [Completes(after=25)]
    world.agent.scripts["B"] = [Silent()]

    async with world.life():
        await world.until(facts.AgentLaunched, 2)
        world.tracker.edit("a", state=state)
        world.tracker.edit("b", state=state)
        await world.until(facts.RunFinished, 2)
        ended_at = trio.current_time()

    rows = {row.issue: (row.status, row.turns) for row in await world.history()}
    assert rows == {"A": (RunStatus.SUCCEEDED, 1), "B": (RunStatus.CANCELLED, 1)}
    assert [fact.reason for fact in world.of(facts.RunStopping)] == [reason]
    assert 30 <= ended_at <= 40
    assert world.of(facts.RetryScheduled) == []


async def test_a_stop_that_meets_the_reread_of_a_completed_turn(clock: MockClock) -> None:
    """A tracker that takes its time to say how the issue stands makes no success a failure."""
    world = World(issue(), polling={"interval_ms": 1000}, agent={"max_turns": 5})
    world.agent.scripts["A"] = [Completes(after=31)]
    fetch = world.tracker.fetch_by_ids

    async def answer_slowly(ids: Collection[IssueId]) -> IssuesRead:
        if world.of(facts.TurnCompleted):
            await trio.sleep(20)
        return await fetch(ids)

    async with world.life():
        await world.until(facts.AgentLaunched)
        await trio.sleep(2)
        world.tracker.edit("a", state="Done")
        setattr(world.tracker, "fetch_by_ids", answer_slowly)  # noqa: B010
        finished = await world.until(facts.RunFinished)

    assert len(world.of(facts.RunStopping)) == 1
    assert (finished.status, finished.turns) == (RunStatus.SUCCEEDED, 1)
