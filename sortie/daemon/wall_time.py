"""The time of day, and the time of day of what the daemon's clock measures."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import trio


def utc_now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


def wall_time(at: float) -> datetime:
    """Turn a time of trio's clock into the time of day."""
    return datetime.fromtimestamp(time.time() + at - trio.current_time(), UTC)
