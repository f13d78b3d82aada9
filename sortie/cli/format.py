"""Points and spans of time, as people read them: the log's zone, which is UTC, and said so."""

from __future__ import annotations

from datetime import UTC, datetime

from sortie.model.numbers import span


def utc(time: datetime) -> str:
    """Write an aware time in UTC, to the second."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def between(begin: datetime, end: datetime) -> str:
    """Write how long it is from one time to another."""
    return span((end - begin).total_seconds())
