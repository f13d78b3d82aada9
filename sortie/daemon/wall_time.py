"""The time of day, and how times of trio's clock become times of day.

Rule: as long as the two clocks agree, a time of trio's clock always becomes the same time of day:
what did not change must not look changed in live events.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

import trio

AGREEMENT = 0.05
"""Seconds by which the clocks may drift apart before they are compared anew."""

_offset = 0.0
"""By how many seconds the time of day is ahead of trio's clock."""


def utc_now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


def wall_time(at: float) -> datetime:
    """Turn a time of trio's clock into the time of day."""
    global _offset
    offset = time.time() - trio.current_time()
    if abs(offset - _offset) > AGREEMENT:
        _offset = offset
    return datetime.fromtimestamp(_offset + at, UTC)
