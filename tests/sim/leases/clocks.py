"""Clocks of machines: none starts where another does, and none goes exactly as fast."""

from __future__ import annotations

import math
from random import Random

import trio

EPOCH = 1_700_000_000.0
MOST_DRIFT = 0.002
"""How much faster or slower a clock goes at most: more than any real one."""


class Clock:
    """The clocks of one machine; true time is that of trio.

    The boot clock drifts, and goes on while its machine is paused. The time of day is off, and a
    person or a program may set it.
    """

    def __init__(self, draw: Random) -> None:
        self._started = draw.uniform(0, 1e6)
        self._rate = 1 + draw.uniform(-MOST_DRIFT, MOST_DRIFT)
        self.wall_offset = draw.choice([0.0, draw.uniform(-2, 2), draw.uniform(-600, 600)])

    def boot(self) -> float:
        """Return the seconds since the machine was started, in whole milliseconds: else a loop that
        waits for what is left of a span would come closer to its end for ever."""
        return math.floor(1000 * (self._started + self._rate * trio.current_time())) / 1000

    def wall(self) -> float:
        """Return the time of day, in Unix seconds."""
        return EPOCH + self._rate * trio.current_time() + self.wall_offset

    def true(self, boot: float) -> float:
        """Return when the boot clock shows a time for certain."""
        return (boot + 0.001 - self._started) / self._rate
