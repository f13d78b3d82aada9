"""A tracker that is away, slow, or whose answers are lost: what goes on, and what comes after."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.model import (
    Issue,
    RunStatus,
    StopReason,
    Streak,
    TrackerError,
    TrackerErrorKind,
    Trigger,
    WaitKind,
)
from sortie.scheduler import records as rec
from sortie.telemetry import facts
from tests.agents.fake import Chats
from tests.orchestrator.daemon_view import view_of
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue

HOUR = 3600.0
POLL = 30.0
DOWN = TrackerErrorKind.UNAVAILABLE


def requests(world: World) -> int:
    """Return how many requests were made of the tracker."""
    return len(world.of(facts.TrackerAsked))


def failed_once(which: Issue, *, delay: float) -> rec.RecordRetry:
    """Return the record of a wait after a failure."""
    return rec.RecordRetry(
        issue=which,
        kind=WaitKind.RETRY,
        trigger=Trigger.ERROR,
        streak=Streak(failures=1),
        delay=delay,
    )


@pytest.mark.parametrize("slots", [1, 10])
async def test_an_hour_away_is_no_storm(clock: MockClock, slots: int) -> None:
    """With hundreds of issues that wait, run and are held the requests keep to the pace of the
    polls; no wait is lost, and all are due when the tracker is back."""
    issues = [issue(f"i{n}") for n in range(100)]
    world = World(*issues, tracker=HANDOFF, agent={"max_concurrent_agents": slots})
    for n, waiting in enumerate(issues):
        await world.store.commit([failed_once(waiting, delay=n)], world.wall())
    world.tracker.down = DOWN

    async with world.life() as orchestrator:
        await trio.sleep(HOUR)
        asked, waits = requests(world), orchestrator.snapshot().waiting
        world.tracker.down = None
        await world.until(facts.TransitionCompleted, 100)

    assert len(waits) == 100
    assert HOUR / POLL <= asked <= 6 * HOUR / POLL
    assert {row.attempt for row in await world.history()} == {1}
    world.tracker.assert_all_in("Review")


@pytest.mark.parametrize("seconds", [150.0, 2 * HOUR])
async def test_a_handoff_outlasts_an_outage_of_writes(clock: MockClock, seconds: float) -> None:
    """Writes answer 500 while reads are well: readiness and the wait say so, no issue is held over
    a restart in the midst of it, and each is handed off without a run once writes are well."""
    names = ["a", "b", "c"]
    world = World(*map(issue, names), tracker=HANDOFF)
    world.tracker.transitions_fail = DOWN
    said: list[tuple[bool, set[str], set[str | None]]] = []

    for _ in range(2):
        async with world.life() as orchestrator:
            view = view_of(orchestrator)
            await trio.sleep(seconds / 2)
            health, waits = view.health(), view.state().waiting
            said.append((health.ready, set(health.reasons), {wait.reason for wait in waits}))
    async with world.life() as orchestrator:
        await trio.sleep(1.0)
        world.tracker.transitions_fail = None
        began = trio.current_time()
        await world.until(facts.TransitionCompleted, 3, lambda fact: fact.error is None)
        took = trio.current_time() - began
        await trio.sleep(1.0)
        ready = view_of(orchestrator).health().ready

    why = "the fake tracker is unavailable"
    assert said == [(False, {why}, {why})] * 2
    assert took <= 20.0
    assert ready
    assert world.of(facts.IssueHeld) == []
    assert [world.agent.runs_of(name.upper()) for name in names] == [1, 1, 1]
    world.tracker.assert_all_in("Review")


@pytest.mark.parametrize("reads", [1, 2, None])
async def test_a_lost_issue_ends_its_run_only_if_it_stays_lost(
    clock: MockClock, reads: int | None
) -> None:
    """Found again by the next read, or while its turn is let end, the run never notices; else it
    is stopped, its workspace stays, and the issue runs anew once it is back."""
    world = World(issue(), tracker=HANDOFF)
    world.agent.scripts["A"] = [Chats(every=10, times=30)]
    rereads = 0

    def count(fact: object) -> None:
        nonlocal rereads
        if isinstance(fact, facts.TrackerAsked) and fact.operation == "fetch_by_ids":
            rereads += 1
            if rereads == reads:
                world.tracker.find_again("a")
        if isinstance(fact, facts.RunStopping):
            world.tracker.find_again("a")

    async with world.life():
        await world.until(facts.AgentLaunched)
        world.tracker.lose("a")
        world.sinks.append(count)
        await world.until(facts.TransitionCompleted)
        stopped = [fact.reason for fact in world.of(facts.RunStopping)]

    assert stopped == ([] if reads else [StopReason.MISSING])
    assert [row.status for row in await world.history()] == (
        [RunStatus.SUCCEEDED] if reads else [RunStatus.CANCELLED, RunStatus.SUCCEEDED]
    )
    world.tracker.assert_all_in("Review")


@pytest.mark.parametrize("lifecycle", ["dispatch", "handoff"])
@pytest.mark.parametrize("how", ["error", "silence"])
async def test_a_move_that_was_made_but_not_answered_is_not_made_twice(
    clock: MockClock, lifecycle: str, how: str
) -> None:
    """The issue stands where it was moved to; the loss of the answer costs no run and no hold."""
    world = World(issue(), tracker={**HANDOFF, "in_progress_state": "Doing"})
    move = world.tracker.transition
    lost = {"dispatch": "Doing", "handoff": "Review"}[lifecycle]

    async def lose_the_answer(present: Issue, state: str) -> Issue:
        moved = await move(present, state)
        if state != lost:
            return moved
        if how == "silence":
            await trio.sleep_forever()
        raise TrackerError(DOWN, "the connection was reset")

    setattr(world.tracker, "transition", lose_the_answer)  # noqa: B010
    async with world.life() as orchestrator:
        await trio.sleep(600)
        claims = dict(orchestrator.snapshot().claims)

    assert claims == {}
    assert world.tracker.journey("a") == ("Todo", "Doing", "Review")
    assert [move.after for move in world.tracker.moves] == ["Doing", "Review"]
    assert world.agent.runs_of("A") == 1
    assert world.of(facts.IssueHeld) == []
