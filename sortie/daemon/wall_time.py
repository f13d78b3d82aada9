"""The time of day, and the time of day of what the daemon's clock measures.

Rule 1: one time of the daemon's clock is one time of day, as long as the two clocks agree: who
compares what was shown with what is shown now sees a change only where there is one.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

import trio

AGREEMENT = 0.05
"""Seconds by which the clocks may drift apart before they are compared anew."""


def utc_now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


def wall_time(at: float) -> datetime:
    """Turn a time of trio's clock into the time of day."""
    return datetime.fromtimestamp(_CLOCKS.offset() + at, UTC)


class _Clocks:
    """How far the time of day is ahead of trio's clock."""

    def __init__(self) -> None:
        self._offset = 0.0

    def offset(self) -> float:
        found = time.time() - trio.current_time()
        if abs(found - self._offset) > AGREEMENT:
            self._offset = found
        return self._offset


_CLOCKS = _Clocks()
