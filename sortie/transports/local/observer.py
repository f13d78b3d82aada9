"""Looks at all processes, in a thread, once for all tasks that ask at the same time."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

import trio

from sortie.resources import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Shortage,
    run_in_thread,
    shortage_behind,
)
from sortie.resources.descriptors import released_reserve
from sortie.resources.prctl import is_subreaper
from sortie.resources.register import not_known
from sortie.transports.local.child_process import ChildProcess
from sortie.transports.local.command_trees import CommandTrees
from sortie.transports.local.process_table import (
    ProcessInfo,
    ProcessTable,
    depth_in,
    read_file,
    read_homes,
    read_process_table,
    read_processes,
)

_TASKS = "/proc/self/task"
_LISTING_TRIES = 10


def own_children() -> frozenset[int] | None:
    """Return the pids of this process's children, zombies too; None where that is not known.

    Those of other threads than the leader are not among them, as long as these threads live.
    It is not known where the kernel has no such listing, or for a shortage. Takes some 0.02 ms.
    """
    try:
        before = _listing()
        for _ in range(_LISTING_TRIES):
            after = _listing()
            if before == after or before <= after:
                return frozenset(int(pid) for pid in before)
            before = after
    except (OSError, ValueError):
        return None
    return None


def _listing() -> frozenset[bytes]:
    return frozenset(read_file(f"{_TASKS}/{os.getpid()}/children").split())


# Looking at processes must not wait behind the removal of a large directory, so it has threads
# of its own. A thread that hangs in the kernel is abandoned, hence more than one.
_THREADS = 8

OBSERVE_EVERY = 2.0
"""Seconds between looks at the descent of processes, while their parents are there to show it."""

_LARGEST_SHARE = 1 / 400
"""Of a core, for these looks: where there are many processes, they are made less often."""

_MOST_LISTINGS = 10
"""Of this process's children, before all processes are looked at."""

_START_PAUSES = (0.001, 0.002, 0.004, 0.008)
"""Seconds in which a command that is being started comes to know its root."""


T = TypeVar("T")


class SharedObservation(Generic[T]):
    """Answers each caller with an observation that was begun after the caller asked.

    Callers that come while one is being made share the next one, so however many ask, at most
    two are made in the time of two. A failed or cancelled observation is made again by the next
    in the queue.
    """

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self._lock = trio.Lock()
        self._begun = 0
        self._latest: tuple[int, T] | None = None

    @property
    def begun(self) -> int:
        """How many observations were begun so far."""
        return self._begun

    async def ask(self) -> T:
        """Return an observation begun after this call; raises what making it raises."""
        begun_before = self._begun
        async with self._lock:
            if self._latest is not None and self._latest[0] > begun_before:
                return self._latest[1]
            self._begun += 1
            number = self._begun
            value = await self._make()
            self._latest = (number, value)
            return value


class Observer:
    """Looks at the processes of this machine for all tasks that wait for some of them to end.

    Rule: a look that fails for a shortage says nothing; it is made again until it succeeds.
    ``shortage`` is what made the last one fail, None where it succeeded.
    """

    def __init__(self, trees: CommandTrees) -> None:
        self._trees = trees
        self._limiter = trio.CapacityLimiter(_THREADS)
        self._plain = SharedObservation(partial(self._look, complete=False))
        self._complete = SharedObservation(partial(self._look, complete=True))
        self._homes = SharedObservation(self._read_homes)
        self._waiting: dict[trio.CancelScope, None] = {}
        self._next_look = math.inf
        self._pause = OBSERVE_EVERY
        self.shortage: Shortage | None = None

    @property
    def looks(self) -> int:
        """How many times all processes were looked at, with their cookies or without."""
        return self._plain.begun + self._complete.begun

    @property
    def sweeps(self) -> int:
        """How many times the cookies of all processes were read."""
        return self._complete.begun

    async def look(self, *, complete: bool) -> ProcessTable:
        """Return how the processes stand now; ``complete`` with the cookie of each of them."""
        return await (self._complete if complete else self._plain).ask()

    async def is_survived_by_none(self, root: ChildProcess) -> bool:
        """Tell whether it is certain that no process lives that descended from a root.

        Never certain while the root runs, and where this process cannot list its children.
        """
        if root.exit() is None or not is_subreaper():
            return False
        adopted = self._adopted()
        for pause in _START_PAUSES:
            if not adopted or not self._trees.starting:
                break
            await trio.sleep(pause)  # an adopted process may be the root of a command that starts
            adopted = self._adopted()
        return adopted is not None and all(self._trees.is_of_another(o, root) for o in adopted)

    def _adopted(self) -> Sequence[ProcessInfo] | None:
        """Return the living that this process adopted, and roots that are not known yet; reap the
        dead. None where it cannot be told.

        A process may start a successor and exit before it is looked at: the successor was not
        listed. So a listing counts only when a later one shows no other process.
        """
        try:
            for _ in range(_MOST_LISTINGS):
                listed, roots = own_children(), self._trees.roots()
                if listed is None:
                    return None
                others = listed - roots
                table = read_processes(others, roots)
                later = own_children() if others else listed
                self._trees.reap(table)  # not before: a pid that is free may be given to a newcomer
                if later is not None and later <= listed | self._trees.roots():
                    return table.adopted
        except OSError:
            return None
        return None

    async def until_exit(self, root: ChildProcess) -> None:
        """Wait until a root has exited.

        One of the waiting tasks looks after adopted processes meanwhile, for all of them.
        """
        if not self._waiting:
            self._next_look = trio.current_time() + self._pause
        while root.exit() is None:
            with trio.CancelScope() as scope:
                self._waiting[scope] = None
                self._choose_who_looks()
                try:
                    await root.exited()
                finally:
                    del self._waiting[scope]
                    if trio.current_time() >= self._next_look:
                        self._next_look = trio.current_time() + self._pause
                    self._choose_who_looks()
            if scope.cancelled_caught and not self._is_in_order():
                await self.look(complete=False)

    def _is_in_order(self) -> bool:
        """Reap the dead; tell whether each adopted process will be known later by its cgroup."""
        adopted = self._adopted()
        return (
            self._trees.grouped
            and adopted is not None
            and all(self._trees.is_of_another(one, None) for one in adopted)
        )

    def _choose_who_looks(self) -> None:
        for scope in self._waiting:
            scope.deadline = self._next_look
            break

    async def real_path(self, path: str) -> str:
        """Return a path without links; it may be on a file system that does not answer."""
        return await self._known(partial(os.path.realpath, path))

    async def occupants(self, directory: str) -> list[int]:
        """Return the pids of the processes that live in a directory, given by its real path, or
        below it."""
        all_homes = await self._homes.ask()
        return [p for p, homes in all_homes.items() if any(depth_in(h, directory) for h in homes)]

    async def _read_homes(self) -> dict[int, tuple[str, ...]]:
        return await self._known(read_homes)

    async def _look(self, *, complete: bool) -> ProcessTable:
        table, spent = await self._known(partial(self._read, complete=complete))
        began = time.thread_time()
        self._trees.observe(table)
        self._pause = max(OBSERVE_EVERY, (spent + time.thread_time() - began) / _LARGEST_SHARE)
        return table

    def _read(self, *, complete: bool) -> tuple[ProcessTable, float]:
        began = time.thread_time()
        table = read_process_table(self._trees.roots(), complete=complete)
        return table, time.thread_time() - began

    async def _known(self, look: Callable[[], T]) -> T:
        """Return what a look shows; where a shortage stands in its way, when that is over."""
        pause = FIRST_PAUSE
        sentence = "it cannot be told which processes live: their runs stay as they are"
        while True:
            try:
                seen = await self._in_thread(look)
            except Exception as exc:
                self.shortage = shortage_behind(exc)
                if self.shortage is None:
                    raise
            else:
                self.shortage = None
                return seen
            with not_known(sentence):
                await trio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _in_thread(self, look: Callable[[], T]) -> T:
        run = partial(run_in_thread, look, limiter=self._limiter, abandon_on_cancel=True)
        try:
            return await run()
        except OSError as exc:
            if shortage_behind(exc) is None:
                raise
        with released_reserve():
            return await run()
