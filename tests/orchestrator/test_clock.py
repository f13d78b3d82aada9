"""A wall clock that jumps: only records and screens know it, and no wait, deadline or run does."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.model import HoldReason, Issue, TurnOutcome
from sortie.telemetry import facts
from tests.agents.fake import Chats, Completes, Fails, Silent
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue

HOURS = 10 * 3600.0
STEPS = pytest.mark.parametrize("step", [-HOURS, HOURS])


class SkewedWorld(World):
    """A world whose wall clock is ``skew`` seconds off."""

    skew = 0.0

    def wall(self) -> float:
        """Return the time of day as a clock that was set shows it."""
        return super().wall() + self.skew


def skewed(*issues: Issue, **agent: int) -> SkewedWorld:
    """Return such a world, in which issues are handed off."""
    return SkewedWorld(*issues, tracker=HANDOFF, agent=agent)


@STEPS
async def test_waits_and_deadlines_do_not_see_a_step(clock: MockClock, step: float) -> None:
    """Retry, stall and turn timeout come when they would have come; the polls keep their pace."""
    world = skewed(
        *map(issue, "abc"), stall_timeout_ms=60_000, turn_timeout_ms=120_000, max_turns=1
    )
    world.agent.scripts["A"] = [Fails(), Completes()]
    world.agent.scripts["B"] = [Silent()]
    world.agent.scripts["C"] = [Chats(every=50, times=99)]

    async with world.life():
        await world.until(facts.AgentLaunched, 3)
        await world.until(facts.RetryScheduled)
        world.skew = step
        await world.until(facts.TransitionCompleted)
        retried_at = world.agent.launched_at[3]
        await world.until(facts.TurnCompleted, 4)
        await trio.sleep(1)
        polls = len(world.of(facts.PollCompleted))
        now = trio.current_time()

    late = {f.outcome: f.seconds for f in world.of(facts.TurnCompleted)[:4] if f.seconds > 1}
    assert retried_at == pytest.approx(11.0)
    assert late == {TurnOutcome.STALLED: 60.0, TurnOutcome.TIMED_OUT: 120.0}
    assert polls == 1 + now // 30


@STEPS
async def test_a_stored_wait_is_no_longer_than_it_was(clock: MockClock, step: float) -> None:
    """After a restart a wait that the clock puts hours away is its own length at most, and one
    that the clock puts hours ago is due: neither is lost."""
    world = skewed(issue("a"))
    world.agent.scripts["A"] = [Fails(), Completes()]

    async with world.life():
        await world.until(facts.RetryScheduled)
    world.skew = step
    born_at = trio.current_time()
    async with world.life():
        await world.until(facts.TransitionCompleted)

    waited = world.agent.launched_at[1] - born_at
    assert waited == pytest.approx(10.0 if step < 0 else 0.0, abs=0.01)
    assert sorted(row.attempt for row in await world.history()) == [0, 1]


@STEPS
async def test_restarts_after_a_step_do_not_begin_a_wait_anew(
    clock: MockClock, step: float
) -> None:
    """A wait that is longer than each of the following lives comes due all the same."""
    world = skewed(issue("a"))
    world.agent.scripts["A"] = [Fails(), Fails(), Fails(), Completes()]
    async with world.life():
        await world.until(facts.RetryScheduled, 3)  # 40 s
    stopped_at = trio.current_time()

    world.skew = step
    for _ in range(6):
        async with world.life():
            await trio.sleep(10)

    waited = world.agent.launched_at[3] - stopped_at
    assert waited == pytest.approx(40.0 if step < 0 else 0.0, abs=0.01)
    assert sorted(row.attempt for row in await world.history()) == [0, 1, 2, 3]


@STEPS
async def test_what_is_shown_of_time_makes_sense(clock: MockClock, step: float) -> None:
    """No sum of times is negative, no hold began in the future, and every run has its row."""
    world = skewed(issue("a"), issue("b"))
    world.agent.scripts["A"] = [Completes(after=10)]
    world.agent.scripts["B"] = [Completes(after=10, status="blocked")]

    async with world.life():
        await world.until(facts.AgentLaunched, 2)
        world.skew = step
        await world.until(facts.TransitionCompleted)
        await world.until(facts.IssueHeld)
    world.skew = -step
    async with world.life_cut_short() as orchestrator:
        snapshot = orchestrator.snapshot()
        (held,) = snapshot.held
        age = snapshot.now - held.since
        totals = await world.store.totals()

    assert held.reason is HoldReason.AGENT_BLOCKED
    assert age >= 0.0
    assert totals.seconds_running >= 0.0
    assert len(await world.history()) == 2
    assert [f.seconds for f in world.of(facts.RunFinished)] == [10.0, 10.0]


@STEPS
async def test_a_kill_among_steps_costs_no_attempt(clock: MockClock, step: float) -> None:
    """A run that was cut short by a kill, while the clock was set, continues at once."""
    world = skewed(issue("a"))
    world.agent.scripts["A"] = [Fails(), Silent(), Completes()]

    async with world.life_cut_short():
        await world.until(facts.AgentLaunched, 2)
    world.skew = step
    born_at = trio.current_time()
    async with world.life():
        await world.until(facts.TransitionCompleted)

    assert world.agent.launched_at[2] - born_at < 1
    assert sorted(row.attempt for row in await world.history()) == [0, 1, 1]
    assert (await world.store.totals()).seconds_running >= 0.0
