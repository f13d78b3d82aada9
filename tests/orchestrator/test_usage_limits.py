"""A usage limit through the loop: from what the agent says to the run that goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import trio
from trio.testing import MockClock

from sortie.model import AgentError, ErrorKind, RunStatus
from sortie.telemetry import facts
from tests.agents.fake import Completes, Raises
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue


async def test_a_run_that_meets_a_limit_goes_on_after_its_reset(clock: MockClock) -> None:
    """With its attempt, in the next life of the daemon too, and without word of a failure."""
    world = World(issue(), tracker={**HANDOFF, "comments": {"on_failure": True}})
    resets_at = datetime.fromtimestamp(world.wall(), UTC) + timedelta(hours=2)
    met = AgentError(ErrorKind.USAGE_LIMIT, "limit reached", resets_at=resets_at)
    world.agent.scripts["A"] = [Raises(error=met), Completes()]

    async with world.life():
        await trio.sleep(1000)
    async with world.life():
        await trio.sleep(6000)
        assert len(world.agent.begun) == 1
        await trio.sleep(600)

    first, last = await world.history()
    assert (first.status, first.error_kind) == (RunStatus.INTERRUPTED, ErrorKind.USAGE_LIMIT)
    assert (last.status, last.attempt) == (RunStatus.SUCCEEDED, 0)
    assert last.started_at >= resets_at
    (limited,) = world.of(facts.AgentLimited)
    assert (limited.agent, limited.resets_at) == ("fake", resets_at)
    assert len(world.of(facts.AgentLimitEnded)) == 1
    assert world.of(facts.CommentCompleted) == []


async def test_what_a_run_used_is_limited_and_recorded(clock: MockClock) -> None:
    """The run is stopped when its agent tells, and its issue held; the row has what was used."""
    world = World(issue(), agent={"max_credits": 1.0, "max_turns": 9})
    world.agent.scripts["A"] = [Completes(credits=0.75)]

    async with world.life():
        await trio.sleep(100)

    (row,) = await world.history()
    assert (row.status, row.turns, row.spent.credits) == (RunStatus.CANCELLED, 2, 1.5)
    assert row.error == (
        "the run was stopped: it has used 1.5 credits, and agent.max_credits allows 1 credit"
    )
    (held,) = world.of(facts.IssueHeld)
    assert held.reason == "usage_budget_exhausted"
    (low,) = world.of(facts.BudgetRunsLow)
    assert (low.key, low.used) == ("agent.max_credits", "1.5 credits")
