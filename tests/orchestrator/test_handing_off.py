"""Handing an issue over to a person after its run."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.model import HoldReason, TrackerErrorKind
from sortie.scheduler.claims import HandingOff
from sortie.telemetry import facts
from tests.agents.fake import Completes
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue


@pytest.fixture(params=[False, True], autouse=True)
def compares(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the tracker is asked before the issue is moved, or known to compare by itself."""
    monkeypatch.setattr(World, "compares", request.param)


async def test_a_handoff_under_way_at_the_end_is_not_done_twice(clock: MockClock) -> None:
    """It gets its time to finish, and the next life finds it made, without another run."""
    world = World(issue(), tracker=HANDOFF)

    async with world.life():
        await world.until(facts.RunFinished)
        world.tracker.delay = 1.0
    moved = world.tracker.states()
    async with world.life():
        await trio.sleep(100)

    assert {fact.result for fact in world.of(facts.TransitionCompleted)} == {"success"}
    assert moved == {"A": "Review"}
    assert world.tracker.journey("a") == ("Todo", "Review")
    assert world.agent.runs_of("A") == 1
    assert (await world.store.recover()).retries == ()


async def test_an_issue_that_vanished_after_its_run_is_held_for_that(clock: MockClock) -> None:
    """What cannot be found cannot be handed off, and the hold says so."""
    world = World(issue(), tracker=HANDOFF)
    world.tracker.transitions_fail = TrackerErrorKind.UNAVAILABLE

    async with world.life():
        await world.until(facts.TransitionCompleted)
        world.tracker.transitions_fail = None
        world.tracker.lose("a")
        held = await world.until(facts.IssueHeld)

    assert held.reason is HoldReason.HANDOFF_FAILED
    assert held.detail == "it could not be moved to Review: the tracker does not know A"


@pytest.mark.parametrize("kind", [TrackerErrorKind.CLOSED, TrackerErrorKind.UNAVAILABLE])
async def test_a_tracker_that_takes_no_changes_is_waited_for(
    clock: MockClock, kind: TrackerErrorKind
) -> None:
    """However long it refuses all of them, no issue is held for it, no agent runs again, and when
    one handoff goes through the others follow at once, over a restart too."""
    names = ["a", "b", "c"]
    world = World(*(issue(name) for name in names), tracker=HANDOFF)
    world.tracker.transitions_fail = kind

    async with world.life() as orchestrator:
        await trio.sleep(3600)
        waiting = orchestrator.snapshot().waiting
        tries = len(world.of(facts.TransitionCompleted))
    async with world.life():
        await trio.sleep(3600)
        world.tracker.transitions_fail = None
        await world.until(facts.TransitionCompleted, where=lambda fact: not fact.error)
        first_at = trio.current_time()
        await world.until(facts.TransitionCompleted, 3, lambda fact: not fact.error)
        last_at = trio.current_time()

    assert [c.refusal != "" for c in waiting if isinstance(c, HandingOff)] == [True] * 3
    assert tries < 3 * 20
    assert world.of(facts.IssueHeld) == []
    assert [world.agent.runs_of(name.upper()) for name in names] == [1, 1, 1]
    assert last_at - first_at < 1
    world.tracker.assert_all_in("Review")


async def test_an_agent_that_asks_for_review_after_its_own_move_gets_it(clock: MockClock) -> None:
    """A change of state that the agent made in its last turn is no person's objection."""
    world = World(issue(), tracker=HANDOFF, agent={"max_turns": 5})
    world.agent.scripts["A"] = [
        Completes(status="needs-human-review", does=lambda: world.tracker.edit("a", state="Doing"))
    ]

    async with world.life():
        await trio.sleep(200)

    assert world.tracker.journey("a") == ("Todo", "Doing", "Review")
    assert world.agent.runs_of("A") == 1
