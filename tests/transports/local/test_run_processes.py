"""Who is found for a sweep, and how a sweep comes to its end, on made-up tables."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from typing import cast

import pytest
import trio
import trio.testing

from sortie.model import ProcessesLeft, ProcessIdentity, RunId
from sortie.resources.process_identity import identity_of
from sortie.transports.local.observer import Observer
from sortie.transports.local.process_table import ProcessInfo, ProcessTable
from sortie.transports.local.reaper import LocalProcesses, RunProcesses
from sortie.transports.reaper import KILL_BOUND, SWEEP_BOUND, Reaper
from sortie.transports.reaper import sweep as end_runs

RUN = RunId("run")
ROOT = ProcessIdentity(pid=1 << 25, started_at=7.0)


def seen(
    pid: int,
    *,
    of: ProcessIdentity | None = None,
    ppid: int = 1,
    sid: int = 0,
    pgid: int = 0,
    cookie: str | None = None,
    mark: int | None = None,
    dead: bool = False,
    started_at: float = 9.0,
) -> ProcessInfo:
    return ProcessInfo(
        identity=of or ProcessIdentity(pid=pid, started_at=started_at),
        ppid=ppid,
        pgid=pgid,
        sid=sid,
        dead=dead,
        stopped=False,
        adopted=False,
        cookie=cookie,
        mark=mark,
    )


def root(*, dead: bool = False, cookie: str | None = None, started_at: float = 7.0) -> ProcessInfo:
    """Return the recorded root as a table shows it."""
    number = ROOT.pid
    return seen(number, sid=number, pgid=number, dead=dead, cookie=cookie, started_at=started_at)


def table_of(*everybody: ProcessInfo, complete: bool = True) -> ProcessTable:
    children: dict[int, list[int]] = {}
    for one in everybody:
        children.setdefault(one.ppid, []).append(one.pid)
    by_pid = {one.pid: one for one in everybody}
    return ProcessTable(by_pid=by_pid, children=children, complete=complete)


def found(runs: RunProcesses, table: ProcessTable) -> set[int]:
    return set(runs.find(table).alive)


Show = Callable[[float], ProcessTable | None]


class FakeObserver:
    """Shows the table of the time that has passed, or hangs where there is none."""

    def __init__(self, show: Show, watch: Show) -> None:
        self._show = show
        self._watch = watch

    async def look(self, *, complete: bool) -> ProcessTable:
        await trio.lowlevel.checkpoint()
        table = (self._show if complete else self._watch)(trio.current_time())
        if table is None:
            await trio.sleep_forever()
        assert table is not None
        return table


async def sweep(runs: RunProcesses, show: Show, watch: Show | None = None) -> int:
    """End the processes of runs with a grace time of 3 s, as these looks show them; ``watch`` is
    for looks without cookies."""
    observer = cast(Observer, FakeObserver(show, watch or show))
    reaper = Reaper(LocalProcesses(observer, runs.find, set()), 3.0, trio.Event())
    return await end_runs(reaper, runs, 3.0)


def test_a_mark_shows_a_process_whose_run_nobody_can_name() -> None:
    """It and its children are found, unless they come from this life; a cookie names the run."""
    me = seen(os.getpid(), mark=7)
    nameless, child, named = seen(11, mark=7), seen(12, ppid=11), seen(13, mark=7, cookie=RUN)
    ours, another = seen(14, ppid=os.getpid(), mark=7), seen(15, mark=8)
    runs = RunProcesses([RUN], {}, 7)

    everybody = found(runs, table_of(me, nameless, child, named, ours, another))

    assert everybody == {11, 12, 13}
    assert runs.runs_of([nameless, child]) == frozenset()
    assert runs.runs_of([named]) == {RUN}


@pytest.mark.parametrize("dead", [False, True])
def test_a_recorded_root_shows_its_session_its_group_and_their_children(dead: bool) -> None:
    """As long as it is there, if only as a zombie, and whoever their parents are now."""
    number = ROOT.pid
    table = table_of(
        root(dead=dead),
        seen(11, sid=number, pgid=11),
        seen(12, sid=12, pgid=number),
        seen(13, ppid=11, sid=13, cookie="another"),
        seen(14, sid=14),
    )

    assert found(RunProcesses([], {RUN: ROOT}), table) == {11, 12, 13} | (
        set() if dead else {number}
    )


@pytest.mark.parametrize(
    "stranger", [root(cookie="another"), root(started_at=7.01), root(started_at=6.99)]
)
def test_a_stranger_with_the_pid_shows_nobody(stranger: ProcessInfo) -> None:
    """Another run's, or one that started at another time; what it leads is not ours either."""
    number = ROOT.pid
    table = table_of(stranger, seen(11, ppid=number), seen(12, sid=number, pgid=number))

    assert found(RunProcesses([RUN], {RUN: ROOT}), table) == set()


def test_another_run_in_the_session_is_a_stranger() -> None:
    """What only shares the session, and names another run, is left alone."""
    table = table_of(root(), seen(11, sid=ROOT.pid, cookie="another"))

    assert found(RunProcesses([RUN], {RUN: ROOT}), table) == {ROOT.pid}


def test_a_session_is_remembered_while_somebody_known_is_in_it() -> None:
    """After the root is gone its number says as much as long as nobody else can have it."""
    number = ROOT.pid
    member = seen(11, sid=number)
    runs = RunProcesses([RUN], {RUN: ROOT})

    first = found(runs, table_of(root(), member))
    held = found(runs, table_of(member, seen(12, sid=number)))
    empty = found(runs, table_of())
    reused = found(runs, table_of(seen(13, sid=number)))

    assert (first, held, empty, reused) == ({number, 11}, {11, 12}, set(), set())


def test_without_the_cookies_nobody_is_taken_for_a_newcomer() -> None:
    """A look that has not read the cookies could not tell a stranger in the session."""
    table = table_of(root(), seen(11, sid=ROOT.pid), complete=False)

    assert found(RunProcesses([RUN], {RUN: ROOT}), table) == set()


def test_neither_this_process_nor_its_ancestors_are_found() -> None:
    """Though they hold the cookie, are recorded, and lead sessions; others in the run are found."""
    me, parent = os.getpid(), 1 << 26
    recorded = ProcessIdentity(pid=parent, started_at=9.0)
    table = table_of(
        seen(parent, sid=parent, cookie=RUN),
        seen(me, ppid=parent, sid=me, cookie=RUN),
        seen(11, ppid=parent, sid=parent),
        seen(12, ppid=me, sid=me),
        seen(13, ppid=parent, cookie=RUN),
    )

    assert found(RunProcesses([RUN], {RUN: recorded}), table) == {13}


@pytest.fixture
def sleepers() -> Iterator[list[ProcessIdentity]]:
    """Give two processes that can be killed."""
    children = [subprocess.Popen(["sleep", "1000"]) for _ in range(2)]
    yield [identity_of(child.pid) for child in children]
    for child in children:
        child.kill()
        child.wait()


async def test_what_the_kernel_holds_after_sigkill_counts_as_ended(
    autojump_clock: trio.testing.MockClock, sleepers: list[ProcessIdentity]
) -> None:
    """It costs the grace time and the bound, and is no reason to hold its issue."""
    table = table_of(seen(sleepers[0].pid, of=sleepers[0], cookie=RUN))

    ended = await sweep(RunProcesses([RUN], {}), lambda _: table)

    assert ended == 1
    assert 3.0 + KILL_BOUND <= trio.current_time() <= 3.0 + KILL_BOUND + 1.0


async def test_who_never_got_sigkill_is_named_with_the_run(
    autojump_clock: trio.testing.MockClock, sleepers: list[ProcessIdentity]
) -> None:
    """A process that no signal reaches is told with its run; others are counted."""
    other = sleepers[0]
    table = table_of(
        seen(other.pid, of=other, cookie="other"),
        seen(1 << 25, cookie=RUN),
        seen(1 << 26, ppid=1 << 25),
    )
    runs = RunProcesses([RUN, RunId("other"), RunId("third")], {})

    with pytest.raises(ProcessesLeft, match=str(1 << 25)) as caught:
        await sweep(runs, lambda _: table)

    left = caught.value
    assert left.pids == {1 << 25, 1 << 26}
    assert left.run_ids == {RUN}
    assert left.ended == 1


async def test_a_look_that_hangs_blames_every_run(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The sweep comes to its end, and no run is said to be clean."""
    runs = RunProcesses([RunId("one")], {RunId("two"): ROOT})

    with pytest.raises(ProcessesLeft, match="could not tell") as caught:
        await sweep(runs, lambda _: None)

    assert caught.value.run_ids == {"one", "two"}
    assert trio.current_time() == 3.0 + SWEEP_BOUND
