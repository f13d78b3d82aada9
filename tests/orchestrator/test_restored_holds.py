"""Holds that a restart finds: judged by the settings and the program of now, and told of."""

from __future__ import annotations

import pytest
import trio
from msgspec.structs import replace

from sortie.facts import Fact
from sortie.model import HoldReason
from sortie.orchestrator.recovery import Recovery, recover
from sortie.scheduler import Memory, Policy
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Held
from sortie.telemetry import facts
from tests.scheduler.driver import POLICY, issue
from tests.store.inline import MemoryStore
from tests.transports.fake import FakeTransport

REVIEW = replace(POLICY, handoff_state="Review")
UNMOVED = "it could not be moved to Review: forbidden"


class Start:
    """A start of the daemon that finds one hold on record."""

    def __init__(self, reason: HoldReason, detail: str = "", sessions: int = 0) -> None:
        self.store = MemoryStore()
        self.told: list[Fact] = []
        self.reason = reason
        self.detail = detail
        self.sessions = sessions

    async def recover(self, policy: Policy, *, program: bool = False) -> Memory:
        """Recover it under settings, with the agent's program there or not."""
        held = rec.RecordHold(
            issue=issue(), reason=self.reason, detail=self.detail, handoff_state="Review"
        )
        await self.store.commit([held], 0.0)

        async def has_program(_rule: str) -> bool:
            await trio.lowlevel.checkpoint()
            return program

        recovery = Recovery(
            store=self.store,
            transport_of=lambda _host: FakeTransport(),
            publish=self.told.append,
            wall=lambda: 0.0,
            grace=5.0,
            has_program=has_program,
        )
        return await recover(recovery, policy)


@pytest.mark.parametrize(
    ("reason", "policy", "program", "why"),
    [
        (HoldReason.AGENT_NOT_FOUND, POLICY, True, "the agent's program is found"),
        (HoldReason.ADAPTER_SETTINGS, POLICY, False, "the daemon was started anew"),
        (HoldReason.INVALID_WORKSPACE_CWD, POLICY, False, "the daemon was started anew"),
        (HoldReason.HANDOFF_FAILED, POLICY, False, "tracker.handoff_state is another now"),
        (
            HoldReason.HANDOFF_FAILED,
            replace(POLICY, handoff_state="Reviewed"),
            False,
            "tracker.handoff_state is another now",
        ),
        (
            HoldReason.SESSION_BUDGET_EXHAUSTED,
            POLICY,
            False,
            "agent.max_sessions allows more sessions now",
        ),
    ],
)
async def test_a_repaired_configuration_ends_the_hold(
    reason: HoldReason, policy: Policy, program: bool, why: str
) -> None:
    """The issue is free before the first poll, on disk too, and the log says why."""
    start = Start(reason, UNMOVED)

    memory = await start.recover(policy, program=program)

    assert memory.claims == ()
    assert (await start.store.recover()).holds == ()
    assert [f.reason for f in start.told if isinstance(f, facts.HoldEnded)] == [why]
    assert not any(isinstance(f, facts.HoldRestored | facts.IssueHeld) for f in start.told)


@pytest.mark.parametrize(
    ("reason", "way"),
    [
        (HoldReason.AGENT_NOT_FOUND, "the agent's program, once it is found"),
        (HoldReason.HANDOFF_FAILED, "another tracker.handoff_state"),
        (HoldReason.AGENT_BLOCKED, "sortie retry A"),
        (HoldReason.OPERATOR, "sortie retry A"),
        (HoldReason.INTERNAL_ERROR, "sortie retry A"),
    ],
)
async def test_a_restored_hold_is_told_with_its_ways_out(reason: HoldReason, way: str) -> None:
    """Whoever reads the log of a start knows which issue waits for what, and what to do."""
    start = Start(reason, UNMOVED)

    memory = await start.recover(REVIEW)

    (held,) = memory.claims
    assert isinstance(held, Held)
    (told,) = [f for f in start.told if isinstance(f, facts.HoldRestored)]
    assert (told.issue, told.reason, told.detail) == (issue(), reason, UNMOVED)
    assert way in told.ways_out
    assert [f.held for f in start.told if isinstance(f, facts.StateRestored)] == [1]


async def test_a_hold_that_the_daemon_crashed_over_stays() -> None:
    """Whatever it is held for, looking at it again may break the daemon again."""
    start = Start(HoldReason.ADAPTER_SETTINGS)
    await start.store.commit([rec.RecordCrash(issue=issue())], 0.0)

    memory = await start.recover(POLICY, program=True)

    assert len(memory.claims) == 1
