"""How many sessions of one host begin at the same time: as many as its login keeps up with.

Rule 1: a session begins from its opening to the first word of our script; then its place is free.
Rule 2: while starts are quick, more of them are let in; when one is slow or silent although it was
not alone, half as many are (additive increase, multiplicative decrease).
Rule 3: one that is silent alone is the host's trouble, and is told to all who wait for a place.
Rule 4: a free place goes to the lowest rank, so a run that has begun its steps goes before one that
has not; nobody is overtaken by who comes later.
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

START_BOUND = 120.0
"""Seconds for which a session waits for its place while no other one gets any."""

_FIRST = 4.0
_MOST = 64.0
_SLOW = 0.4  # of the time that a login may take


class LoginLimit:
    """The places of one host."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._limit = _FIRST
        self._steady = False  # the first slow start was seen, so growth is slow from there on
        self._lowered_at = -math.inf
        self._under_way: set[LoginSlot] = set()
        self._queue: list[tuple[int, int]] = []  # the rank of each who waits, and its arrival
        self._arrivals = itertools.count()
        self._begun_at = -math.inf
        self._failures = 0
        self._failure: HostError | None = None
        self._news = trio.Event()

    @property
    def limit(self) -> int:
        """How many may begin at the same time now."""
        return int(self._limit)

    async def begin(self, at_rank: int | None = None) -> LoginSlot:
        """Wait for a place, by rank (``at_rank``, or that of who asks), then by arrival.

        Raises HostError: BUSY where nobody gets one in time, or what the start failed with that
        was waited for.
        """
        ticket = (rank() if at_rank is None else at_rank, next(self._arrivals))
        seen = self._failures
        insort(self._queue, ticket)
        try:
            with trio.move_on_after(START_BOUND) as patience:
                while self._queue[0] != ticket or len(self._under_way) >= self.limit:
                    await self._news.wait()
                    patience.deadline = max(patience.deadline, self._begun_at + START_BOUND)
                    if self._failures != seen and self._failure is not None:
                        raise HostError(self._failure.trouble, str(self._failure))
        finally:
            self._queue.remove(ticket)
            self._tell()
        if patience.cancelled_caught:
            raise HostError(
                HostTrouble.BUSY,
                f"host {self._host} had no time for any other login in {START_BOUND:g} s: only"
                f" {self.limit} at a time begin fast enough; look at its load and at what its"
                " login files (.bashrc and the like) do, or give it fewer runs"
                " (worker.max_concurrent_agents_per_host)",
            )
        self._begun_at = trio.current_time()
        return LoginSlot(self)

    def _begun(self, start: LoginSlot) -> None:
        self._under_way.add(start)
        for one in self._under_way:
            one.company = max(one.company, len(self._under_way))

    def _over(self, start: LoginSlot) -> None:
        self._under_way.discard(start)
        self._tell()

    def _raise(self) -> None:
        self._limit = min(_MOST, self._limit + (1 / self._limit if self._steady else 1))

    def _lower(self, began_at: float) -> None:
        """Halve the limit, once for all that began before that was done last."""
        self._steady = True
        if began_at > self._lowered_at:
            self._lowered_at = trio.current_time()
            self._limit = max(1.0, self._limit / 2)

    def _fail(self, error: HostError) -> None:
        self._failures += 1
        self._failure = error

    def _tell(self) -> None:
        self._news.set()
        self._news = trio.Event()


@asynccontextmanager
async def login_slot(
    starts: LoginLimit, *, urgent: bool = False, at_rank: int | None = None
) -> AsyncIterator[LoginSlot]:
    """Have a place while the block lasts, or until its start is over; see ``LoginLimit.begin``.

    What is ``urgent`` waits for none: it makes an end of something.
    """
    start = LoginSlot(starts) if urgent else await starts.begin(at_rank)
    try:
        yield start
    finally:
        start.leave()


class LoginSlot:
    """One place; given back once. ``company`` is how many began together with it, itself too."""

    def __init__(self, starts: LoginLimit) -> None:
        self.company = 1
        self._starts = starts
        self._began_at = trio.current_time()
        self._over = False
        starts._begun(self)

    def opened(self) -> None:
        """Note that the session is open: from here on its login takes time."""
        self._began_at = trio.current_time()

    def succeeded(self, patience: float) -> None:
        """Note that our script has begun, for which ``patience`` seconds were given."""
        if self._over:
            return
        if trio.current_time() - self._began_at > _SLOW * patience:
            if self.company > 1:
                self._starts._lower(self._began_at)
        else:
            self._starts._raise()
        self.leave()

    def was_silent(self, error: HostError) -> bool:
        """Note that our script did not begin in time; return whether to try again, as others were
        beginning at the same time. Where not, ``error`` is told to those who wait."""
        crowded = self.company > 1
        if crowded:
            self._starts._lower(self._began_at)
        elif not self._over:
            self._starts._fail(error)
        self.leave()
        return crowded

    def leave(self) -> None:
        """Give the place back."""
        if not self._over:
            self._over = True
            self._starts._over(self)
