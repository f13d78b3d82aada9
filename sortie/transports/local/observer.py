"""Takes censuses in a thread, one for all who need one at the same time."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from typing import TypeVar

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
from sortie.transports.local.process_table import ProcessTable, depth_in, take_census, take_homes
from sortie.transports.local.process_tree import Families
from sortie.transports.local.shared import Shared

# Looking at processes must not wait behind the removal of a large directory, so it has threads
# of its own. A thread that hangs in the kernel is abandoned, hence more than one.
_THREADS = 8


T = TypeVar("T")


class Observer:
    """Looks at the processes of this machine for everybody who waits for some of them to end.

    Rule: a look that fails for a shortage says nothing; it is made again until it succeeds.
    ``shortage`` is what made the last one fail, None where it succeeded.
    """

    def __init__(self, families: Families) -> None:
        self._families = families
        self._limiter = trio.CapacityLimiter(_THREADS)
        self._plain = Shared(partial(self._take, everyone=False))
        self._with_cookies = Shared(partial(self._take, everyone=True))
        self._homes = Shared(self._take_homes)
        self._taken_at = -math.inf
        self.shortage: Shortage | None = None

    @property
    def sweeps(self) -> int:
        """How many times the cookies of all processes were read."""
        return self._with_cookies.begun

    async def census(self) -> ProcessTable:
        """Return how the processes stand now."""
        return await self._plain.ask()

    async def sweep(self) -> ProcessTable:
        """Return how the processes stand now, with the cookie of every one of them."""
        return await self._with_cookies.ask()

    async def glance(self, max_age: float) -> None:
        """Note ancestry and reap the adopted, unless that was done ``max_age`` seconds ago."""
        if trio.current_time() - self._taken_at >= max_age:
            await self.census()

    async def occupants(self, directory: str) -> list[int]:
        """Return the pids of the processes that live in a directory or below it."""
        real = await self._known(partial(os.path.realpath, directory))
        everybody = await self._homes.ask()
        return [pid for pid, homes in everybody.items() if any(depth_in(h, real) for h in homes)]

    async def _take_homes(self) -> dict[int, tuple[str, ...]]:
        return await self._known(take_homes)

    async def _take(self, *, everyone: bool) -> ProcessTable:
        census = await self._known(lambda: take_census(self._families.roots(), everyone=everyone))
        self._taken_at = trio.current_time()
        self._families.observe(census)
        return census

    async def _known(self, look: Callable[[], T]) -> T:
        """Return what a look shows; where a shortage stands in its way, when that is over."""
        pause = FIRST_PAUSE
        sentence = "it cannot be told which processes live: their runs stay as they are"
        while True:
            try:
                seen = await self._looked(look)
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

    async def _looked(self, look: Callable[[], T]) -> T:
        run = partial(run_in_thread, look, limiter=self._limiter, abandon_on_cancel=True)
        try:
            return await run()
        except OSError as exc:
            if shortage_behind(exc) is None:
                raise
        with released_reserve():
            return await run()
