"""How many logins on one host begin at the same time: a fixed number, in the order of their ranks.

Rule 1: a login takes place from the opening of its session to the first message of our script.
Rule 2: a free place goes to the lowest rank, so a run that has begun its steps goes before one that
has not. Rule 3: a login that is silent for too long fails for all that wait for a place, too.
"""

from __future__ import annotations

import itertools
import math
from bisect import insort
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from sortie.model import HostError, HostTrouble
from sortie.transports.rank import rank

LOGINS_AT_ONCE = 16
"""With a login that takes two seconds of waiting, 64 runs begin within eight."""

CROWDED = 4
"""A login that is not alone may take so many times as long as one that is."""

PLACE_BOUND = 120.0
"""Seconds for which a login waits for its place while no other one gets any."""


class LoginLimit:
    """The places of one host."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._under_way: set[LoginSlot] = set()
        self._queue: list[tuple[int, int]] = []  # the rank of each that waits, and its arrival
        self._arrivals = itertools.count()
        self._last_login_at = -math.inf
        self._failures = 0
        self._failure: HostError | None = None
        self._news = trio.Event()

    @asynccontextmanager
    async def slot(
        self, *, urgent: bool = False, at_rank: int | None = None
    ) -> AsyncIterator[LoginSlot]:
        """Have a place while the block lasts, by rank (``at_rank``, or that of the task), then by
        arrival. An ``urgent`` login waits for none: it makes an end of something.

        Raises HostError: BUSY where no place is free in time, or what the login failed with that
        was waited for.
        """
        if not urgent:
            await self._wait(rank() if at_rank is None else at_rank)
        slot = LoginSlot(crowded=bool(self._under_way))
        for other in self._under_way:
            other.crowded = True
        self._under_way.add(slot)
        try:
            yield slot
        finally:
            self._under_way.discard(slot)
            self._notify()

    def fail(self, error: HostError) -> None:
        """Have all logins fail that wait for a place."""
        self._failures += 1
        self._failure = error

    async def _wait(self, at_rank: int) -> None:
        ticket = (at_rank, next(self._arrivals))
        seen = self._failures
        insort(self._queue, ticket)
        try:
            with trio.move_on_after(PLACE_BOUND) as patience:
                while self._queue[0] != ticket or len(self._under_way) >= LOGINS_AT_ONCE:
                    await self._news.wait()
                    patience.deadline = max(patience.deadline, self._last_login_at + PLACE_BOUND)
                    if self._failures != seen and self._failure is not None:
                        raise HostError(self._failure.trouble, str(self._failure))
        finally:
            self._queue.remove(ticket)
            self._notify()
        if patience.cancelled_caught:
            raise HostError(
                HostTrouble.BUSY,
                f"host {self._host} had no time for any other login in {PLACE_BOUND:g} s:"
                f" {len(self._under_way)} have not begun; look at its load and at what its login"
                " files (.bashrc and the like) do, or give it fewer runs"
                " (worker.max_concurrent_agents_per_host)",
            )
        self._last_login_at = trio.current_time()

    def _notify(self) -> None:
        self._news.set()
        self._news = trio.Event()


class LoginSlot:
    """A place; ``crowded`` tells whether another login took place at the same time."""

    def __init__(self, *, crowded: bool) -> None:
        self.crowded = crowded
