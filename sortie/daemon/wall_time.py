"""The time of day, and how times of trio's clock become times of day.

Rule: as long as the two clocks agree, a time of trio's clock always becomes the same time of day:
what did not change must not look changed in live events.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

import trio

AGREEMENT = 0.05
"""Seconds by which the clocks may drift apart before they are compared anew."""

_offset = 0.0
"""By how many seconds the time of day is ahead of trio's clock."""


_past: ContextVar[float | None] = ContextVar("past", default=None)


@contextmanager
def times_of_day(offset: float) -> Iterator[None]:
    """Add this to times while the block lasts: they are those of another daemon's clock."""
    token = _past.set(offset)
    try:
        yield
    finally:
        _past.reset(token)


def utc_now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


def wall_time(at: float) -> datetime:
    """Turn a time of trio's clock into the time of day."""
    global _offset
    past = _past.get()
    if past is not None:
        return datetime.fromtimestamp(past + at, UTC)
    offset = time.time() - trio.current_time()
    if abs(offset - _offset) > AGREEMENT:
        _offset = offset
    return datetime.fromtimestamp(_offset + at, UTC)
