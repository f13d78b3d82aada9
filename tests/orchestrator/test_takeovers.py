"""Runs of an earlier daemon that go on with their agents, and those that do not."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from sortie.model import (
    HoldReason,
    HostError,
    HostTrouble,
    KnownWorkspace,
    RunId,
    Spending,
)
from sortie.model.turns_under_way import TurnUnderWay
from sortie.orchestrator.recovery import Recovery, recover
from sortie.scheduler import Memory, Record, RunIds, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Running, Waiting
from sortie.store import UnfinishedRun
from sortie.telemetry import facts
from sortie.transports import Command, Process
from tests.orchestrator.test_recovery import POLICY, WALL, Heir, begun, finds_none, waiting
from tests.transports.fake import FakeTransport
from tests.worker.rig import issue

RUN = RunId("run-on")
SPENT = Spending(input_tokens=100)


class KeepingTransport(FakeTransport):
    """A host on which the programs with these names can be gone on with."""

    keeps_programs = True

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names
        self.trouble: Exception | None = None

    async def kept(self, names: Collection[str]) -> Collection[str]:
        await trio.lowlevel.checkpoint()
        if self.trouble is not None:
            raise self.trouble
        return [name for name in names if name in self.names]

    def adopted(self, command: Command, name: str) -> AbstractAsyncContextManager[Process]:
        raise NotImplementedError


def turn(program: str = "p-1") -> TurnUnderWay:
    return TurnUnderWay(
        number=2,
        issue=issue("on"),
        daemon="alpha:17",
        agent="fake",
        command="'fake'",
        spent=Spending(input_tokens=60),
        program=program,
    )


LEFT: list[Record] = [
    begun("on", failures=1, host="h"),
    rec.RecordWorkspace(
        run_id=RUN,
        workspace=KnownWorkspace(
            issue_id=issue("on").id, identifier="on", host="h", path="/w/on", rule=""
        ),
    ),
    rec.RecordTurn(run_id=RUN, issue_id=issue("on").id, turn=2, sessions=1),
    rec.RecordTurnUnderWay(run_id=RUN, turn=turn()),
    rec.RecordSpending(run_id=RUN, spent=SPENT),
]
"""A run on a host in its second turn, of which 40 tokens are on record."""


class KeepingHeir(Heir):
    """Recovers with a host that keeps programs, 50 seconds later."""

    def __init__(self, transport: FakeTransport, *, is_same: bool = True) -> None:
        super().__init__()
        self.transport: FakeTransport = transport
        self.local = FakeTransport()
        self.is_same = is_same

    async def recover(self) -> Memory:
        recovery = Recovery(
            store=self.store,
            transport_of=lambda host: self.transport if host == "h" else self.local,
            publish=self.told.append,
            wall=lambda: WALL + 50,
            grace=5.0,
            has_program=finds_none,
            goes_on=self._goes_on,
        )
        return await recover(recovery, POLICY)

    def _goes_on(self, _run: UnfinishedRun, _rule: str) -> bool:
        return self.is_same


async def test_a_run_whose_program_is_kept_goes_on(clock: MockClock) -> None:
    """It is not swept, keeps its claim and its attempt, and it is on record from whom it came."""
    heir = KeepingHeir(KeepingTransport("p-1"))

    memory = await heir.inherit(LEFT)

    (taken,) = memory.taken_over
    now = trio.current_time()
    assert memory.claims == ()
    assert taken.claim == Running(
        issue=issue("on"),
        run_id=RUN,
        streak=begun("on", failures=1).streak,
        host="h",
        since=now - 50,
        began_in=issue("on").state,
        turns=2,
        taken_over="from alpha:17 in turn 2",
    )
    assert (taken.turn, taken.workspace, taken.spent) == (turn(), "/w/on", SPENT)
    assert (taken.seconds, taken.turn_seconds) == (50, 50)
    assert heir.transport.swept == []
    row = await heir.store.run(RUN)
    assert row is not None
    assert (row.taken_over, row.finished_at) == ("from alpha:17 in turn 2", None)
    restored = facts.StateRestored(interrupted=0, taken_over=1, waiting=0, held=0, paused=False)
    assert heir.told == [restored]


RETRY = waiting("on")
HOLD = rec.RecordHold(issue=issue("on"), reason=HoldReason.AGENT_BLOCKED, detail="why")
AWAY = HostError(HostTrouble.UNREACHABLE, "away")


@pytest.mark.parametrize(
    ("more", "transport", "is_same"),
    [
        ([], KeepingTransport("another"), True),
        ([], KeepingTransport("p-1"), False),
        ([RETRY], KeepingTransport("p-1"), True),
        ([HOLD], KeepingTransport("p-1"), True),
        ([rec.RecordCrash(issue=issue("on"))], KeepingTransport("p-1"), True),
        ([rec.RecordTurnUnderWay(run_id=RUN, turn=None)], KeepingTransport("p-1"), True),
        ([], FakeTransport(), True),
    ],
    ids=["gone", "another agent", "retry", "hold", "crash", "turn over", "keeps none"],
)
async def test_in_doubt_a_run_is_ended(
    clock: MockClock, more: list[Record], transport: FakeTransport, *, is_same: bool
) -> None:
    """And counts as interrupted, as ever."""
    heir = KeepingHeir(transport, is_same=is_same)

    memory = await heir.inherit([*LEFT, *more])

    row = await heir.store.run(RUN)
    assert memory.taken_over == ()
    assert any(RUN in swept for swept in heir.transport.swept)
    assert row is not None
    assert (row.status, row.taken_over) == ("interrupted", None)


async def test_a_run_on_a_host_that_is_away_is_interrupted(clock: MockClock) -> None:
    """It may live there until its lease ends, for which its issue waits."""
    transport = KeepingTransport("p-1")
    transport.trouble = transport.faults["sweep"] = AWAY

    memory = await KeepingHeir(transport).inherit(LEFT)

    (claim,) = memory.claims
    assert memory.taken_over == ()
    assert isinstance(claim, Waiting)
    assert claim.due_at > trio.current_time()


async def test_what_goes_on_counts_once_and_is_left_without_a_record(clock: MockClock) -> None:
    """What is told anew of a turn is no more than before, until it is; who lets it go records
    nothing of its end."""
    memory = await KeepingHeir(KeepingTransport("p-1")).inherit(LEFT)
    now = trio.current_time()
    scheduler = Scheduler(POLICY, now=now, new_run_id=RunIds(UUID(int=1)), memory=memory)

    start = scheduler.going_on(memory.taken_over[0], now)
    before = scheduler.snapshot(now)
    again = scheduler.handle(ev.SpendingReported(RUN, Spending(input_tokens=70)), now)
    more = scheduler.handle(ev.SpendingReported(RUN, Spending(input_tokens=130)), now)
    left = scheduler.handle(ev.RunLetGo(RUN), now)

    assert (start.run_id, start.host, start.taken_over) == (RUN, "h", memory.taken_over[0])
    assert [claim.run_id for claim in before.worked] == [RUN]
    assert not [one for one in again if isinstance(one, rec.RecordSpending)]
    assert rec.RecordSpending(run_id=RUN, spent=Spending(input_tokens=130)) in more
    assert not [one for one in left if isinstance(one, rec.RecordExit | do.StartWorker)]
    assert list(scheduler.snapshot(now).worked) == []
