"""The reaper, on processes that are made up."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from signal import Signals

import pytest
import trio
from trio.testing import MockClock

from sortie.model import ProcessIdentity
from sortie.transports.reaper import (
    HURRIED_KILL_BOUND,
    KILL_BOUND,
    SWEEP_BOUND,
    ProcessListing,
    Reaper,
)

TERM, KILL, CONT = Signals.SIGTERM, Signals.SIGKILL, Signals.SIGCONT


@dataclass(eq=False)
class Made:
    """A process that ends so many seconds after a signal; with ``leaves``, others appear then."""

    pid: int
    after_term: float = 0.0
    after_kill: float = 0.0
    stopped: bool = False
    leaves: Sequence[Made] = ()
    gone_at: float = math.inf
    identity: ProcessIdentity | None = None
    cookie: str | None = None
    ppid: int = 1
    pgid: int = 1
    sid: int = 1
    dead: bool = False

    @property
    def handle(self) -> int:
        return self.pid


@dataclass
class MadeProcesses:
    """Processes by table; ``told`` is who got which signal when."""

    all: list[Made]
    hindered: bool = False
    told: list[tuple[float, int, Signals]] = field(default_factory=list)
    given_up: set[int] = field(default_factory=set)
    looks: list[bool] = field(default_factory=list)

    async def list(self, *, newcomers: bool) -> ProcessListing[Made]:
        await trio.lowlevel.checkpoint()
        self.looks.append(newcomers)
        for one in list(self.all):
            if one.gone_at <= trio.current_time():
                self.all.remove(one)
                self.all += one.leaves
        return ProcessListing(
            alive={one.pid: one for one in self.all if one.pid not in self.given_up}
        )

    async def signal(self, processes: Sequence[Made], number: Signals) -> Sequence[Made]:
        await trio.lowlevel.checkpoint()
        for one in processes:
            self.told.append((trio.current_time(), one.pid, number))
            after = {TERM: one.after_term, KILL: one.after_kill}.get(number, math.inf)
            one.gone_at = min(one.gone_at, trio.current_time() + after)
        return processes

    def give_up(self, processes: Collection[Made]) -> None:
        self.given_up.update(one.pid for one in processes)


def reaper(
    processes: MadeProcesses, *, leader: int | None = None, hurry: trio.Event | None = None
) -> Reaper[Made]:
    """Return a reaper with a grace time of 10 s."""
    return Reaper(processes, 10.0, hurry if hurry is not None else trio.Event(), leader=leader)


async def test_who_is_polite_gets_one_signal(autojump_clock: MockClock) -> None:
    """SIGTERM once, and nothing else in the grace time."""
    processes = MadeProcesses([Made(1, after_term=9.0)])

    found = [await reaper(processes).end(), await reaper(processes).end()]

    assert found == [True, False]
    assert processes.told == [(0.0, 1, TERM)]


async def test_the_stubborn_are_killed_after_the_grace_time(autojump_clock: MockClock) -> None:
    """Not before, and until they are gone."""
    processes = MadeProcesses([Made(1, after_term=math.inf)])
    subject = reaper(processes)

    await subject.end()

    assert [(round(at, 6), number) for at, _, number in processes.told] == [
        (0.0, TERM),
        (10.0, KILL),
    ]
    assert (subject.ended, subject.killed, subject.left) == ({1}, {1}, {})


async def test_elders_are_told_first_and_the_stopped_go_on(autojump_clock: MockClock) -> None:
    """Whatever their order in the list."""
    born = {1: 3.0, 2: 1.0, 3: 2.0}
    made = [
        Made(pid, identity=ProcessIdentity(pid=pid, started_at=at), stopped=pid == 3)
        for pid, at in born.items()
    ]
    processes = MadeProcesses(made)

    await reaper(processes).end()

    assert [(pid, number) for _, pid, number in processes.told] == [
        (2, TERM),
        (3, TERM),
        (1, TERM),
        (3, CONT),
    ]


@pytest.mark.parametrize("leader", [None, 1])
async def test_what_a_leader_leaves_is_told_once_the_leader_is_gone(
    autojump_clock: MockClock, leader: int | None
) -> None:
    """Without a leader, it has the rest of the grace time for itself, and is killed then."""
    left = Made(2, after_term=1.0)
    processes = MadeProcesses([Made(1, after_term=2.0, leaves=[left])])

    await reaper(processes, leader=leader).end()

    others = [(round(at), number) for at, pid, number in processes.told if pid == 2]
    assert others == ([(10, KILL)] if leader is None else [(2, TERM)])


async def test_who_was_told_with_its_leader_is_not_told_again(autojump_clock: MockClock) -> None:
    """Nor is what appears after those that the leader has left."""
    last = Made(3, after_term=1.0)
    child = Made(2, after_term=5.0, leaves=[last])
    processes = MadeProcesses([Made(1, after_term=2.0), child])

    await reaper(processes, leader=1).end()

    others = [(round(at), pid, number) for at, pid, number in processes.told if pid != 1]
    assert others == [(0, 2, TERM), (10, 3, KILL)]


@pytest.mark.parametrize("hurried", [False, True])
async def test_who_does_not_die_is_given_up(autojump_clock: MockClock, hurried: bool) -> None:
    """After the bound, which is short where there is a hurry, and the others are ended."""
    hurry = trio.Event()
    if hurried:
        hurry.set()
    processes = MadeProcesses([Made(1, after_term=math.inf, after_kill=math.inf), Made(2)])
    subject = reaper(processes, hurry=hurry)

    await subject.end()

    bound = HURRIED_KILL_BOUND if hurried else 10.0 + KILL_BOUND
    assert bound <= trio.current_time() <= bound + 0.5
    assert list(subject.left) == [1]
    assert processes.given_up == {1}
    assert not await subject.end()


async def test_ending_all_goes_on_until_nobody_new_is_found(autojump_clock: MockClock) -> None:
    """The grace time is that of the first who was found."""

    class Late(MadeProcesses):
        async def list(self, *, newcomers: bool) -> ProcessListing[Made]:
            if newcomers and sum(self.looks) == 1:
                self.all.append(Made(2, after_term=math.inf))
            return await super().list(newcomers=newcomers)

    processes = Late([Made(1, after_term=math.inf)])

    assert await reaper(processes).end_all()

    assert processes.all == []
    assert [pid for _, pid, _ in processes.told] == [1, 1, 2, 2]
    assert trio.current_time() < 11.0
    assert processes.looks[0] is processes.looks[-1] is True


async def test_newcomers_without_end_are_left_in_bounded_time(autojump_clock: MockClock) -> None:
    """Somebody new is there at each look, and none of them stays."""

    class Supply(MadeProcesses):
        async def list(self, *, newcomers: bool) -> ProcessListing[Made]:
            self.all = [Made(len(self.looks) + 1)] if newcomers else []
            return await super().list(newcomers=newcomers)

    processes = Supply([])

    assert await reaper(processes).end_all()

    assert trio.current_time() <= 10.0 + SWEEP_BOUND
    assert len(processes.all) == 1


async def test_a_look_that_hangs_is_broken_off(autojump_clock: MockClock) -> None:
    """Then nobody knows who is left."""

    class Silent(MadeProcesses):
        async def list(self, *, newcomers: bool) -> ProcessListing[Made]:
            await trio.sleep_forever()
            raise AssertionError

    assert not await reaper(Silent([])).end_all()

    assert trio.current_time() == 10.0 + SWEEP_BOUND


async def test_what_hands_over_all_the_time_is_looked_at_often(autojump_clock: MockClock) -> None:
    """Each look catches it with some luck only: there are hundreds before it is given up."""
    chain = Made(400, after_term=math.inf)
    for pid in range(399, 0, -1):
        chain = Made(pid, after_term=math.inf, leaves=(chain,))
    processes = MadeProcesses([chain])
    subject = reaper(processes)

    await subject.end()

    assert (processes.all, subject.left) == ([], {})
