"""Takes censuses in a thread, one for all who need one at the same time."""

from __future__ import annotations

import math
import os
from functools import partial

import trio

from sortie.transports.local.census import Census, depth_in, take_census, take_homes
from sortie.transports.local.families import Families
from sortie.transports.local.shared import Shared

# Looking at processes must not wait behind the removal of a large directory, so it has threads
# of its own. A thread that hangs in the kernel is abandoned, hence more than one.
_THREADS = 8


class Observer:
    """Looks at the processes of this machine for everybody who waits for some of them to end."""

    def __init__(self, families: Families) -> None:
        self._families = families
        self._limiter = trio.CapacityLimiter(_THREADS)
        self._plain = Shared(partial(self._take, everyone=False))
        self._with_cookies = Shared(partial(self._take, everyone=True))
        self._homes = Shared(self._take_homes)
        self._taken_at = -math.inf

    @property
    def sweeps(self) -> int:
        """How many times the cookies of all processes were read."""
        return self._with_cookies.begun

    async def census(self) -> Census:
        """Return how the processes stand now."""
        return await self._plain.ask()

    async def sweep(self) -> Census:
        """Return how the processes stand now, with the cookie of every one of them."""
        return await self._with_cookies.ask()

    async def glance(self, max_age: float) -> None:
        """Note ancestry and reap the adopted, unless that was done ``max_age`` seconds ago."""
        if trio.current_time() - self._taken_at >= max_age:
            await self.census()

    async def occupants(self, directory: str) -> list[int]:
        """Return the pids of the processes that live in a directory or below it."""
        real = await trio.to_thread.run_sync(
            os.path.realpath, directory, limiter=self._limiter, abandon_on_cancel=True
        )
        everybody = await self._homes.ask()
        return [pid for pid, homes in everybody.items() if any(depth_in(h, real) for h in homes)]

    async def _take_homes(self) -> dict[int, tuple[str, ...]]:
        return await trio.to_thread.run_sync(
            take_homes, limiter=self._limiter, abandon_on_cancel=True
        )

    async def _take(self, *, everyone: bool) -> Census:
        take = partial(take_census, self._families.roots(), everyone=everyone)
        census = await trio.to_thread.run_sync(take, limiter=self._limiter, abandon_on_cancel=True)
        self._taken_at = trio.current_time()
        self._families.observe(census)
        return census
