"""Times as they are written for machines and for agents, and spans of time for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal


def rfc3339(time: datetime, unit: Literal["seconds", "microseconds"] = "microseconds") -> str:
    """Write an aware time in UTC, down to the unit. Raises ValueError for a naive one."""
    if time.tzinfo is None:
        raise ValueError(f"a time without a zone cannot be shown: {time.isoformat()}")
    return time.astimezone(UTC).isoformat(timespec=unit).replace("+00:00", "Z")


def span(seconds: float) -> str:
    """Write a duration with two units at most; a negative one counts as none."""
    whole = int(max(0.0, seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, left = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{left:02}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h{minutes:02}m"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours:02}h"
