"""The steps of a reaper, where real processes cannot be made to misbehave enough."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import cast

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from sortie.model import ProcessIdentity
from sortie.resources.process_identity import identity_of
from sortie.resources.shortages import Resource, Shortage
from sortie.transports.local import reaper as reaper_module
from sortie.transports.local.child_process import ChildProcess
from sortie.transports.local.observer import Observer
from sortie.transports.local.process_table import ProcessInfo, ProcessTable, read_process_table
from sortie.transports.local.reaper import Find, LocalProcesses, send
from sortie.transports.ownership import ancestry
from sortie.transports.reaper import KILL_BOUND, ProcessListing, Reaper

EMPTY = ProcessTable(by_pid={}, children={}, complete=False)


def seen(identity: ProcessIdentity) -> ProcessInfo:
    """Return a process as a table would show it."""
    return ProcessInfo(
        identity=identity,
        ppid=os.getpid(),
        pgid=0,
        sid=0,
        dead=False,
        stopped=False,
        adopted=False,
    )


def gone() -> ProcessIdentity:
    """Return the identity of a process that is over."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = identity_of(child.pid)
    child.communicate()
    return identity


class FakeObserver:
    """Looks at nothing: who is there is made up by the tests."""

    async def is_survived_by_none(self, root: ChildProcess) -> bool:
        """Leave it to the table."""
        await trio.lowlevel.checkpoint()
        return False

    async def look(self, *, complete: bool) -> ProcessTable:
        """Return an empty table."""
        await trio.lowlevel.checkpoint()
        return EMPTY


def reaper_of(
    find: Find, given_up: set[ProcessIdentity] | None = None, grace: float = 3.0
) -> Reaper[ProcessInfo]:
    """Return a reaper of those who are found."""
    observer = cast(Observer, FakeObserver())
    processes = LocalProcesses(observer, find, set() if given_up is None else given_up)
    return Reaper(processes, grace, trio.Event())


async def test_who_cannot_be_signalled_for_a_shortage_is_not_given_up(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the shortage lasts, a process that got no signal is tried again, as it may be
    ended yet."""
    survivor = seen(gone())
    killed: list[float] = []

    def scarce(_seen: ProcessInfo, signum: signal.Signals) -> bool:
        if trio.current_time() < 10 * KILL_BOUND:
            raise Shortage(Resource.FILES, "no more files")
        killed.append(trio.current_time())
        return signum == signal.SIGKILL

    monkeypatch.setattr(reaper_module, "send", scarce)
    reaper = reaper_of(
        lambda _: ProcessListing() if killed else ProcessListing(alive={survivor.pid: survivor})
    )

    await reaper.end()

    assert len(killed) == 1
    assert reaper.left == {}
    assert reaper.killed == {survivor.handle}


async def test_the_undecided_are_waited_for_and_not_killed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """While somebody may still turn out to belong here, the end waits, up to the grace time."""
    reaper = reaper_of(lambda _: ProcessListing(undecided=True))

    await reaper.end()

    assert 3.0 <= trio.current_time() <= 3.2
    assert reaper.ended == set()


def test_a_recycled_pid_is_not_signalled() -> None:
    """A signal meant for a process that is over does not hit the one that has its pid now."""
    with subprocess.Popen(["sleep", "1000"]) as child:
        now = identity_of(child.pid)
        replaced = seen(replace(now, started_at=now.started_at - 0.01))

        hit_stranger = send(replaced, signal.SIGKILL)

        assert (hit_stranger, child.poll()) == (False, None)
        assert send(seen(identity_of(child.pid)), signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL


@pytest.mark.parametrize("number", [1, 0, -1])
async def test_no_group_is_signalled_that_is_not_a_roots(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """0 would be our own group, and 1 all processes; a root that was reaped has none."""
    told: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, _signum: told.append(group))
    root = ChildProcess.__new__(ChildProcess)
    root.pid, root.pinned = number, True
    former = gone()
    one = seen(replace(former, pid=number))
    processes = LocalProcesses(
        cast(Observer, FakeObserver()), lambda _: ProcessListing(), set(), root
    )

    for signum in (signal.SIGTERM, signal.SIGKILL):
        await processes.signal([one], signum)
    root.pid, root.pinned = former.pid, False
    await processes.signal([seen(former)], signal.SIGKILL)

    assert told == []


def test_a_table_shows_descent_and_death() -> None:
    """Children, their sessions and zombies are seen; only foreign sessions count as adopted."""
    with (
        subprocess.Popen(["sleep", "1000"]) as ours,
        subprocess.Popen(["sleep", "1000"], start_new_session=True) as foreign,
        subprocess.Popen(["sleep", "1000"], start_new_session=True) as root,
        subprocess.Popen(["true"]) as zombie,
    ):
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)

        table = read_process_table({root.pid}, complete=False)

        pids = (ours.pid, foreign.pid, root.pid, zombie.pid)
        facts = [table.by_pid[pid] for pid in pids]
        assert [fact.adopted for fact in facts] == [False, True, False, False]
        assert [fact.dead for fact in facts] == [False, False, False, True]
        assert set(table.tree([os.getpid()])) >= set(pids)
        assert os.getppid() in ancestry(table.by_pid, os.getpid())
        for child in (ours, foreign, root):
            child.kill()
