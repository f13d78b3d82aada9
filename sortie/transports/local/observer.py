"""Looks at all processes, in a thread, once for all who ask for it at the same time."""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable
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
from sortie.resources.register import not_known
from sortie.transports.local.process_table import (
    ProcessTable,
    depth_in,
    read_homes,
    read_process_table,
)
from sortie.transports.local.process_tree import ProcessTrees

# Looking at processes must not wait behind the removal of a large directory, so it has threads
# of its own. A thread that hangs in the kernel is abandoned, hence more than one.
_THREADS = 8


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
    """Looks at the processes of this machine for everybody who waits for some of them to end.

    Rule: a look that fails for a shortage says nothing; it is made again until it succeeds.
    ``shortage`` is what made the last one fail, None where it succeeded.
    """

    def __init__(self, trees: ProcessTrees) -> None:
        self._trees = trees
        self._limiter = trio.CapacityLimiter(_THREADS)
        self._plain = SharedObservation(partial(self._look, complete=False))
        self._complete = SharedObservation(partial(self._look, complete=True))
        self._homes = SharedObservation(self._read_homes)
        self._looked_at = -math.inf
        self.shortage: Shortage | None = None

    @property
    def sweeps(self) -> int:
        """How many times the cookies of all processes were read."""
        return self._complete.begun

    async def look(self, *, complete: bool) -> ProcessTable:
        """Return how the processes stand now; ``complete`` with the cookie of each of them."""
        return await (self._complete if complete else self._plain).ask()

    async def glance(self, max_age: float) -> None:
        """Note ancestry and reap the adopted, unless that was done ``max_age`` seconds ago."""
        if trio.current_time() - self._looked_at >= max_age:
            await self.look(complete=False)

    async def real_path(self, path: str) -> str:
        """Return a path without links; it may be on a file system that does not answer."""
        return await self._known(partial(os.path.realpath, path))

    async def occupants(self, directory: str) -> list[int]:
        """Return the pids of the processes that live in a directory, given by its real path, or
        below it."""
        everybody = await self._homes.ask()
        return [p for p, homes in everybody.items() if any(depth_in(h, directory) for h in homes)]

    async def _read_homes(self) -> dict[int, tuple[str, ...]]:
        return await self._known(read_homes)

    async def _look(self, *, complete: bool) -> ProcessTable:
        table = await self._known(
            lambda: read_process_table(self._trees.roots(), complete=complete)
        )
        self._looked_at = trio.current_time()
        self._trees.observe(table)
        return table

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
