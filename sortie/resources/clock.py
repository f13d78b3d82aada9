"""Time as the daemon's limits count it: it stands still while the daemon does.

A process that is stopped (SIGSTOP), a machine that is paused or far too busy: when it goes on, the
time of many a limit has passed, and what would have kept it lies unread in pipes. A daemon that
looked at the clock first would end agents that had worked all the while.

Rule 1: a gap in which the daemon could not act counts for no limit.
Rule 2: after a gap the time stands still for ``SETTLING`` seconds more, in which what is pending
is read.
Rule 3: the time never goes back.
While the machine sleeps nothing has to be done: the clock below (CLOCK_MONOTONIC) does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import trio

GAP_THRESHOLD = 2.0
"""Seconds by which a wake-up has to be late to count as a gap."""

SETTLING = 1.0
"""Seconds after a gap in which what has come meanwhile is read before anything is judged."""

TICK = 1.0
"""Seconds between wake-ups while something runs: a gap is noticed by the one that comes late."""

IDLE_TICK = 5.0
"""The same while nothing runs whose limits a gap that is not noticed would eat into."""


class PauseClock(trio.abc.Clock):
    """A clock for ``trio.run``; ``now`` gives monotonic seconds.

    ``beats`` grows with every look of trio at the clock, so at least with every round of its loop.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._looked_at = now()
        self._latest = 0.0  # the latest time that was given
        self._forgiven = 0.0
        self._sleeping = 0.0  # how long trio meant to sleep from the last look on
        self.paused = 0.0
        self.beats = 0

    def start_clock(self) -> None:
        """See trio.abc.Clock."""
        self._looked_at = self._now()

    def current_time(self) -> float:
        """Return the seconds that count."""
        raw = self._now()
        gap = raw - self._looked_at
        if gap > self._sleeping + GAP_THRESHOLD:
            self._forgiven += gap + SETTLING
            self.paused += gap
        self._looked_at, self._sleeping = raw, 0.0
        self.beats += 1
        if raw - self._forgiven > self._latest:
            self._latest = raw - self._forgiven
        return self._latest

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Return for how long to sleep until a deadline, a standstill included."""
        self.current_time()
        seconds = deadline + self._forgiven - self._looked_at
        self._sleeping = max(0.0, seconds)
        return seconds

    async def tick(
        self, told_of: Callable[[float], object], is_idle: Callable[[], bool] = lambda: False
    ) -> None:
        """Have gaps noticed, and tell of each how many seconds it took, until cancelled."""
        told = 0.0
        while True:
            await trio.sleep(IDLE_TICK if is_idle() else TICK)
            if self.paused > told:
                seconds, told = self.paused - told, self.paused
                told_of(seconds)
