"""Observations made once for many."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Collection
from itertools import pairwise

import pytest
import trio
import trio.testing

from sortie.transports import Exit
from sortie.transports.local import become_subreaper
from sortie.transports.local import observer as observer_module
from sortie.transports.local.child_process import ChildProcess
from sortie.transports.local.command_trees import CommandTrees
from sortie.transports.local.observer import (
    OBSERVE_EVERY,
    Observer,
    SharedObservation,
    own_children,
)
from sortie.transports.local.process_table import ProcessTable, read_processes


class Counter:
    """Counts up by one when it is let."""

    def __init__(self) -> None:
        self.count = 0
        self.gate = trio.Event()

    async def make(self) -> int:
        self.count += 1
        number = self.count
        await self.gate.wait()
        return number


async def test_those_who_ask_meanwhile_share_the_next_one() -> None:
    """An answer was begun after it was asked for, and twenty callers need two of them."""
    counter = Counter()
    shared = SharedObservation(counter.make)
    answers: list[int] = []

    async def ask() -> None:
        answers.append(await shared.ask())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(20):
            nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        counter.gate.set()
    late = await shared.ask()

    assert answers == [1] + [2] * 20
    assert late == 3


async def test_a_cancelled_maker_is_replaced() -> None:
    """When the caller who makes the observation is cancelled, the next in the queue makes it."""
    counter = Counter()
    shared = SharedObservation(counter.make)
    answers: list[int] = []
    scope = trio.CancelScope()

    async def give_up() -> None:
        with scope:
            await shared.ask()

    async def ask() -> None:
        answers.append(await shared.ask())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give_up)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
        counter.gate.set()

    assert answers == [2]


async def test_a_failure_reaches_its_caller_only() -> None:
    """An observation that fails is made again for the next who asks."""
    attempts = 0

    async def make() -> int:
        nonlocal attempts
        attempts += 1
        await trio.lowlevel.checkpoint()
        if attempts == 1:
            raise OSError("too many open files")
        return attempts

    shared = SharedObservation(make)

    with pytest.raises(OSError, match="too many"):
        await shared.ask()

    assert await shared.ask() == 2


class FakeRoot(ChildProcess):
    """A root that exits when it is told."""

    def __init__(self) -> None:
        self.over = trio.Event()

    def exit(self) -> Exit | None:
        return Exit(status=0) if self.over.is_set() else None

    async def exited(self) -> Exit:
        await self.over.wait()
        return Exit(status=0)


class CountingObserver(Observer):
    """Notes when it was asked to look, and sees nobody."""

    def __init__(self) -> None:
        super().__init__(CommandTrees())
        self.looked_at: list[float] = []

    def _is_in_order(self) -> bool:
        return False

    async def look(self, *, complete: bool) -> ProcessTable:
        self.looked_at.append(round(trio.current_time(), 3))
        await trio.sleep(0.01)
        return ProcessTable(by_pid={}, children={}, complete=complete)


async def test_many_who_wait_for_exits_have_one_look_for_all(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whoever of them exits or is cancelled, the looks go on until the last one is gone."""
    observer = CountingObserver()
    roots = [FakeRoot() for _ in range(20)]
    cancelled = trio.CancelScope()

    async def wait_cancelled() -> None:
        with cancelled:
            await observer.until_exit(FakeRoot())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_cancelled)
        for root in roots:
            nursery.start_soon(observer.until_exit, root)
        await trio.sleep(1.5 * OBSERVE_EVERY)
        cancelled.cancel()
        for root in roots:
            root.over.set()
            await trio.sleep(OBSERVE_EVERY / 4)
    until = 1.5 * OBSERVE_EVERY + 19 * OBSERVE_EVERY / 4

    gaps = [b - a for a, b in pairwise([0.0, *observer.looked_at, until])]
    assert all(gap <= 1.1 * OBSERVE_EVERY for gap in gaps)
    assert len(observer.looked_at) <= until / OBSERVE_EVERY
    await trio.sleep(10 * OBSERVE_EVERY)
    assert len(observer.looked_at) == len(gaps) - 1


async def test_a_root_that_exits_when_a_look_is_due_does_not_end_the_looks(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The next one who waits has them."""
    observer = CountingObserver()
    first, second = FakeRoot(), FakeRoot()

    async with trio.open_nursery() as nursery:
        for root in (first, second):
            nursery.start_soon(observer.until_exit, root)
            await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(OBSERVE_EVERY)
        first.over.set()
        await trio.sleep(2 * OBSERVE_EVERY)
        looks = len(observer.looked_at)
        second.over.set()

    assert looks >= 1


_HAND_OVER = """
import os, sys, time
sys.stdin.readline()
if os.fork():
    os._exit(0)
os.setsid()
print("taken over", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists one's children")
async def test_who_is_handed_over_to_while_one_looks_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one who was listed is dead when it is looked at, and its successor was not listed."""
    assert become_subreaper()
    root = FakeRoot()
    root.over.set()
    listed_one = subprocess.Popen(
        [sys.executable, "-c", _HAND_OVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    told, heard = listed_one.stdin, listed_one.stdout
    assert told is not None
    assert heard is not None
    before = own_children()
    assert before is not None

    def look(pids: Collection[int], roots: Collection[int]) -> ProcessTable:
        if not told.closed:
            told.close()
            assert heard.readline() == b"taken over\n"
            os.waitid(os.P_PID, listed_one.pid, os.WEXITED | os.WNOWAIT)
        return read_processes(pids, roots)

    monkeypatch.setattr(observer_module, "read_processes", look)

    outlived = not await Observer(CommandTrees()).is_survived_by_none(root)
    after = own_children()
    assert after is not None
    successors = after - before
    for pid in successors:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    heard.close()
    listed_one.wait()

    assert len(successors) == 1
    assert outlived
