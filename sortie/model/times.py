"""Times as they are written for machines and for agents."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal


def rfc3339(time: datetime, unit: Literal["seconds", "microseconds"] = "microseconds") -> str:
    """Write an aware time in UTC, down to the unit. Raises ValueError for a naive one."""
    if time.tzinfo is None:
        raise ValueError(f"a time without a zone cannot be shown: {time.isoformat()}")
    return time.astimezone(UTC).isoformat(timespec=unit).replace("+00:00", "Z")
