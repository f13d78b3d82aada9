"""The steps of ending processes, where real processes cannot be made to misbehave enough."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest
import trio
import trio.testing

from sortie.model import ProcessesLeft, ProcessIdentity
from sortie.resources.shortages import Resource, Shortage
from sortie.transports.local import ending as ending_module
from sortie.transports.local.ending import KILL_BOUND, Ending, send
from sortie.transports.local.process_table import ProcessTable, Seen, take_census
from sortie.transports.local.process_tree import Families, Members

EMPTY = ProcessTable(by_pid={}, children={}, everyone=False)


def seen(process: psutil.Process) -> Seen:
    """Return a process as a census would show it."""
    return Seen(
        handle=process,
        pid=process.pid,
        ppid=os.getpid(),
        pgid=0,
        sid=0,
        dead=False,
        stopped=False,
        adopted=False,
    )


def gone() -> psutil.Process:
    """Return the handle of a process that is over."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    handle = psutil.Process(child.pid)
    child.communicate()
    return handle


async def look() -> ProcessTable:
    await trio.lowlevel.checkpoint()
    return EMPTY


async def test_what_does_not_die_is_named_and_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A process that SIGKILL does not end costs the grace time and the bound, and an error."""
    families = Families()
    immortal = seen(gone())
    ending = Ending(
        give_up=families.give_up,
        hurry=trio.Event(),
        find=lambda _: Members(alive={immortal.pid: immortal}),
    )

    with pytest.raises(ProcessesLeft, match=rf"\b{immortal.pid}\b") as caught:
        await ending.end(3.0, look)

    assert 3.0 + KILL_BOUND <= trio.current_time() <= 3.0 + KILL_BOUND + 1.0
    assert caught.value.pids == {immortal.pid}
    assert not families.within_reach(immortal)


async def test_who_cannot_be_signalled_for_a_shortage_is_not_given_up(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the shortage lasts, a process that got no signal is tried again, as it may be
    ended yet."""
    families = Families()
    survivor = seen(gone())
    killed: list[float] = []

    def scarce(_seen: Seen, signum: signal.Signals) -> bool:
        if trio.current_time() < 10 * KILL_BOUND:
            raise Shortage(Resource.FILES, "no more files")
        killed.append(trio.current_time())
        return signum == signal.SIGKILL

    monkeypatch.setattr(ending_module, "send", scarce)
    ending = Ending(
        give_up=families.give_up,
        hurry=trio.Event(),
        find=lambda _: Members() if killed else Members(alive={survivor.pid: survivor}),
    )

    await ending.end(3.0, look)

    assert len(killed) == 1
    assert families.within_reach(survivor)


async def test_elders_are_asked_to_end_first(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell that waits for its child does not see it go before it is told itself, or it would
    exit as if all were well."""
    process = seen(gone())
    born = {3: 10.0, 1: 30.0, 2: 20.0}
    family = {
        pid: replace(process, pid=pid, identity=ProcessIdentity(pid=pid, started_at=began))
        for pid, began in born.items()
    }
    told: list[int] = []

    def tell(one: Seen, _signum: signal.Signals) -> bool:
        told.append(one.pid)
        return True

    monkeypatch.setattr(ending_module, "send", tell)
    ending = Ending(
        give_up=Families().give_up,
        hurry=trio.Event(),
        find=lambda _: Members() if told else Members(alive=dict(sorted(family.items()))),
    )

    await ending.end(3.0, look)

    assert told == [3, 2, 1]


async def test_the_undecided_are_waited_for_and_not_killed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """While somebody may still turn out to belong here, the end waits, up to the grace time."""
    ending = Ending(
        give_up=Families().give_up,
        hurry=trio.Event(),
        find=lambda _: Members(undecided=True),
    )

    await ending.end(3.0, look)

    assert 3.0 <= trio.current_time() <= 3.2
    assert ending.ended == set()


def test_a_recycled_pid_is_not_signalled() -> None:
    """A signal meant for a process that is over does not hit the one that has its pid now."""
    with subprocess.Popen(["sleep", "1000"]) as child:
        former = gone()
        replaced = replace(seen(former), pid=child.pid)

        hit_stranger = send(replaced, signal.SIGKILL)

        assert (hit_stranger, child.poll()) == (False, None)
        assert send(seen(psutil.Process(child.pid)), signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL


def test_a_census_shows_descent_and_death() -> None:
    """Children, their sessions and zombies are seen; only foreign sessions count as adopted."""
    with (
        subprocess.Popen(["sleep", "1000"]) as ours,
        subprocess.Popen(["sleep", "1000"], start_new_session=True) as foreign,
        subprocess.Popen(["sleep", "1000"], start_new_session=True) as root,
        subprocess.Popen(["true"]) as zombie,
    ):
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)

        census = take_census({root.pid}, everyone=False)

        pids = (ours.pid, foreign.pid, root.pid, zombie.pid)
        facts = [census.by_pid[pid] for pid in pids]
        assert [fact.adopted for fact in facts] == [False, True, False, False]
        assert [fact.dead for fact in facts] == [False, False, False, True]
        assert set(census.tree([os.getpid()])) >= set(pids)
        assert os.getppid() in census.ancestry(os.getpid())
        for child in (ours, foreign, root):
            child.kill()
