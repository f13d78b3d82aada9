"""Agents that crash, are missing or fail."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from sortie.model import AgentError, ErrorKind, HoldReason, RunStatus
from sortie.scheduler import policy_of
from sortie.telemetry import facts
from tests.agents.fake import Chats, Completes, Fails, Raises
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue


@pytest.mark.parametrize("where", ["entering", "run_turn", "leaving"])
async def test_an_agent_that_crashes_fails_one_run(clock: MockClock, where: str) -> None:
    """The run fails with an internal error, is retried, and other runs do not notice."""
    world = World(issue("a"), issue("b"), tracker=HANDOFF)
    world.agent.scripts["B"] = [Chats(every=1, times=60)]
    bug = LookupError("a bug")
    match where:
        case "entering":
            world.agent.refusals["A"].append(bug)
        case "run_turn":
            world.agent.scripts["A"] = [Raises(error=bug), Completes()]
        case _:
            world.agent.stop_error = bug

    async with world.life():
        await world.until(facts.RunFinished)
        world.agent.stop_error = None
        await world.until(facts.TransitionCompleted, 2)

    rows = [(row.issue, row.status, row.error_kind) for row in await world.history()]
    assert sorted(rows, key=lambda row: row[0]) == [
        ("A", RunStatus.FAILED, ErrorKind.INTERNAL_ERROR),
        ("A", RunStatus.SUCCEEDED, None),
        ("B", RunStatus.SUCCEEDED, None),
    ]
    assert len(world.of(facts.AdapterCrashed)) == 1


async def test_a_missing_agent_holds_the_issue(clock: MockClock) -> None:
    """``agent_not_found`` is not retried; a reload ends the hold."""
    world = World(issue(), tracker=HANDOFF)
    world.agent.refusals["A"].append(AgentError(ErrorKind.AGENT_NOT_FOUND, "no such program"))

    async with world.life() as orchestrator:
        held = await world.until(facts.IssueHeld)
        await trio.sleep(1000)
        runs = world.agent.runs_of("A"), len(await world.history())
        orchestrator.apply(world.settings, policy_of(world.settings))
        await world.until(facts.TransitionCompleted)

    assert (held.reason, held.detail) == (HoldReason.AGENT_NOT_FOUND, "no such program")
    assert runs == (0, 1)


async def test_a_failing_run_is_retried_later_and_later(clock: MockClock) -> None:
    """10, 20, 40 seconds lie between the runs, and the attempt counts the failures."""
    world = World(issue(), tracker=HANDOFF)
    world.agent.scripts["A"] = [Fails(), Fails(), Fails(), Completes()]

    async with world.life():
        await world.until(facts.TransitionCompleted)

    assert [row.attempt for row in await world.history()] == [0, 1, 2, 3]
    starts = world.agent.launched_at
    pauses = [later - earlier for earlier, later in pairwise(starts)]
    assert pauses == [11.0, 21.0, 41.0]
