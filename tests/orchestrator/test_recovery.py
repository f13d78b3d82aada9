"""What a new life makes of what an earlier one left, processes that stay and crashes included."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.facts import Fact
from sortie.model import (
    HoldReason,
    IssueId,
    KnownWorkspace,
    ProcessesLeft,
    ProcessIdentity,
    RunId,
    RunStatus,
    StoreError,
    Streak,
    TransportError,
    Trigger,
    WaitKind,
)
from sortie.orchestrator.recovery import Recovery, recover
from sortie.resources.lease import LEASE, Lease, boot_time
from sortie.scheduler import Memory, Record, policy_of
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Claim, Held, Waiting
from sortie.scheduler.timing import adrift_delay
from sortie.telemetry import facts
from sortie.worker.cleanup import removal_cookie
from tests.agents.fake import Silent
from tests.orchestrator.world import HANDOFF, World
from tests.store.inline import MemoryStore
from tests.transports.fake import FakeTransport
from tests.worker.rig import issue, settings_of

POLICY = policy_of(settings_of(tracker=HANDOFF))
WALL = 1_700_000_000.0
LEFT = "could not end processes 4711"


def begun(name: str, failures: int = 0, host: str = "local") -> rec.RecordRun:
    """Return the record of a run of the issue of that name."""
    return rec.RecordRun(
        run_id=RunId(f"run-{name}"),
        issue=issue(name),
        streak=Streak(failures=failures),
        host=host,
        agent="fake",
    )


def recovered_run(name: str, attempt: int = 0) -> facts.RunRecovered:
    """Return the fact that an earlier daemon's run of the issue of that name was recovered."""
    return facts.RunRecovered(
        run_id=RunId(f"run-{name}"),
        issue=issue(name),
        host="local",
        attempt=attempt,
        began=WALL,
        heard_of=WALL,
    )


def waiting(name: str) -> rec.RecordRetry:
    """Return the record of a wait."""
    return rec.RecordRetry(
        issue=issue(name),
        kind=WaitKind.RETRY,
        trigger=Trigger.ERROR,
        streak=Streak(failures=1),
        delay=10.0,
    )


def left(*names: str, ended: int = 0) -> ProcessesLeft:
    """Return the error of a sweep after which processes of these runs are there still."""
    runs = frozenset(f"run-{name}" for name in names)
    return ProcessesLeft(LEFT, pids=frozenset({4711}), run_ids=runs, ended=ended)


class Heir:
    """Recovers what is in its store, at ``wall``; ``told`` are the facts."""

    def __init__(self, wall: float = WALL) -> None:
        self.wall = wall
        self.store = MemoryStore()
        self.transport = FakeTransport()
        self.told: list[Fact] = []

    async def inherit(self, records: Sequence[Record]) -> Memory:
        """Recover these records."""
        await self.store.commit(records, WALL)
        return await self.recover()

    async def recover(self) -> Memory:
        """Recover what is there."""
        recovery = Recovery(
            store=self.store,
            transport_of=lambda _host: self.transport,
            publish=self.told.append,
            wall=lambda: self.wall,
            grace=5.0,
            has_program=finds_none,
        )
        return await recover(recovery, POLICY)

    async def held(self) -> dict[str, HoldReason]:
        """Return what the store holds."""
        return {hold.issue.id: hold.reason for hold in (await self.store.recover()).holds}


async def test_nothing_left_is_nothing_done(clock: MockClock) -> None:
    """A first start writes nothing, and looks only for what no record names."""
    heir = Heir()

    memory = await heir.inherit([])

    assert memory == Memory()
    assert heir.transport.swept == [frozenset()]
    assert heir.told == [facts.StateRestored(interrupted=0, waiting=0, held=0, paused=False)]


async def test_what_was_ended_on_a_host_is_counted_once_and_as_a_hosts(clock: MockClock) -> None:
    """The name of a host is no label's value: there may be any number of them."""
    heir = Heir()
    heir.transport.faults["sweep"] = ProcessesLeft(LEFT, pids=frozenset({7}), ended=4)

    await heir.inherit([begun("a", host="build1")])

    told = [f for f in heir.told if isinstance(f, facts.OrphansReaped | facts.OrphansLeft)]
    assert sorted(told, key=str) == [
        facts.OrphansLeft(where="host", error=LEFT),
        facts.OrphansLeft(where="local", error=LEFT),
        facts.OrphansReaped(where="host", count=4),
        facts.OrphansReaped(where="local", count=4),
    ]


async def test_runs_are_ended_before_they_are_recorded_as_over(clock: MockClock) -> None:
    """The search is for all runs and removals at once, and what it finds is counted; a kill
    meanwhile leaves the runs on record as under way."""
    heir = Heir()
    known = KnownWorkspace(issue_id=IssueId("z"), identifier="Z", host="local", path="/elsewhere/Z")
    process = ProcessIdentity(pid=4711, started_at=1.0)
    seen: list[int] = []
    roots: list[object] = []
    sweep = heir.transport.sweep

    async def look(*args: object, **options: object) -> int:
        seen.append(len((await heir.store.recover()).unfinished))
        roots.append(options["roots"])
        return 3 + await sweep(*args, **options)  # type: ignore[arg-type]

    setattr(heir.transport, "sweep", look)  # noqa: B010
    memory = await heir.inherit(
        [
            begun("a", failures=2),
            rec.RecordProcess(run_id=RunId("run-a"), process=process),
            rec.RecordWorkspace(run_id=RunId("run-a"), workspace=known),
            begun("b"),
        ]
    )

    assert (seen, roots) == ([2], [{"run-a": process}])
    assert heir.transport.swept == [frozenset({"run-a", "run-b", removal_cookie(known)})]
    assert [(c.issue.id, c.streak) for c in memory.claims if isinstance(c, Waiting)] == [
        ("a", Streak(failures=2, interruptions=1)),
        ("b", Streak(failures=0, interruptions=1)),
    ]
    assert [row.status for row in await heir.store.history()] == [RunStatus.INTERRUPTED] * 2
    assert heir.told == [
        facts.OrphansReaped(where="local", count=3),
        recovered_run("a", attempt=2),
        recovered_run("b"),
        facts.StateRestored(interrupted=2, waiting=2, held=0, paused=False),
    ]


@pytest.mark.parametrize(
    ("error", "held"),
    [
        (left("a", ended=2), ["a"]),
        (left("a", "b"), ["a", "b"]),
        (left(), ["a", "b"]),  # nobody knows whose they are
        (left("of a removal"), []),
    ],
)
async def test_an_issue_whose_processes_stay_is_held(
    clock: MockClock, error: ProcessesLeft, held: list[str]
) -> None:
    """No second agent is put beside one that could not be ended; the other runs go on."""
    heir = Heir()
    heir.transport.faults["sweep"] = error

    memory = await heir.inherit([begun("a"), begun("b"), waiting("c")])

    claims = {c.issue.id: type(c) for c in memory.claims}
    assert claims == {"c": Waiting} | {
        IssueId(name): Held if name in held else Waiting for name in "ab"
    }
    assert [c.since for c in memory.claims if isinstance(c, Held)] == [trio.current_time()] * len(
        held
    )
    assert await heir.held() == dict.fromkeys(held, HoldReason.INTERNAL_ERROR)
    assert [row.status for row in await heir.store.history()] == [RunStatus.INTERRUPTED] * 2
    assert [f for f in heir.told if isinstance(f, facts.OrphansLeft)] == [
        facts.OrphansLeft(where="local", error=LEFT)
    ]
    told = [(f.issue.id, f.reason) for f in heir.told if isinstance(f, facts.IssueHeld)]
    assert told == [(name, HoldReason.INTERNAL_ERROR) for name in held]
    reaped = [f.count for f in heir.told if isinstance(f, facts.OrphansReaped)]
    assert reaped == [error.ended]


@pytest.mark.parametrize("where", ["sweep", "commit"])
async def test_a_recovery_that_fails_changes_nothing(clock: MockClock, where: str) -> None:
    """Where this machine's processes cannot be looked at, or nothing can be written, the daemon
    does not start, and the next one finds what this one found."""
    heir = Heir()
    await heir.store.commit([begun("a", failures=1)], WALL)
    before = await heir.store.recover()
    full = StoreError("disk full")
    if where == "sweep":
        heir.transport.faults["sweep"] = TransportError("no /proc")
    else:
        setattr(heir.transport, "sweep", fails_the_disk(heir, full))  # noqa: B010

    with pytest.raises((TransportError, StoreError)):
        await heir.recover()
    heir.store.failing = None

    assert await heir.store.recover() == before


def fails_the_disk(heir: Heir, error: StoreError) -> object:
    """Return a sweep after which the disk is full."""

    async def sweep(*_args: object, **_options: object) -> int:
        await trio.lowlevel.checkpoint()
        heir.store.failing = error
        return 0

    return sweep


@pytest.mark.parametrize(("crashes", "is_held"), [(0, False), (1, False), (2, True), (3, True)])
async def test_a_second_crash_over_an_issue_holds_it(
    clock: MockClock, crashes: int, is_held: bool
) -> None:
    """One crash may be chance; from the second on the issue is held, whatever it waits for."""
    heir = Heir()
    crash = rec.RecordCrash(issue=issue("a"))

    memory = await heir.inherit([waiting("a"), waiting("b"), *[crash] * crashes])

    assert await heir.held() == ({"a": HoldReason.INTERNAL_ERROR} if is_held else {})
    assert memory.crashed == (frozenset({"a"}) if crashes else frozenset())
    assert [type(c) for c in memory.claims if c.issue.id == "b"] == [Waiting]
    assert [type(c) for c in memory.claims if c.issue.id == "a"] == [Held if is_held else Waiting]


async def test_a_held_issue_of_a_left_process_runs_when_an_operator_says_so(
    clock: MockClock,
) -> None:
    """Its hold outlives restarts and polls, and ends with a retry."""
    world = World(issue("a"), issue("b"), tracker=HANDOFF)
    world.agent.scripts["A"] = [Silent()]
    async with world.life_cut_short():
        await world.until(facts.AgentLaunched, 2)
    world.agent.scripts["A"] = []
    world.transport.faults["sweep"] = left()
    (run,) = [r for r in (await world.store.recover()).unfinished if r.issue.id == "a"]
    await park_what_stays(world, run.run_id)

    async with world.life() as orchestrator:
        await trio.sleep(3600)
        begun_alone = [name for name, _ in world.agent.begun]
        orchestrator.tell(ev.RetryAsked("A"))
        await world.until(facts.TransitionCompleted, 2)

    assert sorted(begun_alone) == ["A", "B", "B"]
    world.tracker.assert_all_in("Review")


async def park_what_stays(world: World, run_id: RunId) -> None:
    """Recover as the daemon does, with a process of this run that stays."""
    world.transport.faults["sweep"] = ProcessesLeft(
        LEFT, pids=frozenset({4711}), run_ids=frozenset({run_id})
    )
    recovery = Recovery(
        store=world.store,
        transport_of=lambda _host: world.transport,
        publish=world.publish,
        wall=world.wall,
        grace=5.0,
        has_program=finds_none,
    )
    await recover(recovery, policy_of(world.settings))
    world.transport.faults.clear()


async def test_a_run_on_a_host_that_cannot_be_asked_is_waited_out(clock: MockClock) -> None:
    """Its issue runs again when the lease has ended what may go on there, and not before: 30 s of
    lease, the grace time and 5 s."""
    heir = Heir()
    refused = TransportError("no route to host")
    sweep = heir.transport.sweep

    async def look(run_ids: Collection[RunId], **options: object) -> int:
        if run_ids:
            raise refused
        return await sweep(run_ids, **options)  # type: ignore[arg-type]

    setattr(heir.transport, "sweep", look)  # noqa: B010
    memory = await heir.inherit([begun("a", host="build1")])
    (claim,) = memory.claims
    (stored,) = (await heir.store.recover()).retries

    assert isinstance(claim, Waiting)
    assert claim.due_at == trio.current_time() + 40.0
    assert (stored.delay, stored.streak) == (40.0, Streak(interruptions=1))


@pytest.mark.parametrize("ahead", [0.0, 600.0])
async def test_no_clock_of_another_machine_ends_the_wait_for_a_lost_host(
    clock: MockClock, ahead: float
) -> None:
    """A wait that may be for the end of what runs on a host begins anew with each leader; one that
    is shorter is for something else, and goes by the time of day."""
    lost = replace(waiting("lost"), delay=adrift_delay(POLICY))
    heir = Heir(wall=WALL + ahead)

    with leading():
        memory = await heir.inherit([lost, waiting("failed")])

    due_in = {claim.issue.id: due_in_of(claim) for claim in memory.claims}
    assert due_in == {"lost": adrift_delay(POLICY), "failed": max(10.0 - ahead, 0.0)}


def due_in_of(claim: Claim) -> float:
    """Return in how many seconds a wait is over."""
    assert isinstance(claim, Waiting)
    return claim.due_at - trio.current_time()


@contextmanager
def leading() -> Iterator[None]:
    """Have a lease within the block."""
    token = LEASE.set(Lease("team", 7, "here:1", boot_time() + 600))
    try:
        yield
    finally:
        LEASE.reset(token)


async def finds_none(_rule: str) -> bool:
    """Look for the agent's program, in vain."""
    await trio.lowlevel.checkpoint()
    return False
