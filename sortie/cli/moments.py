"""Moments of the past, as people name them: a date and time, a time of day, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

from sortie.cli.parameters import WrongUsage

_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_EXAMPLES = "2026-11-28T03:12, 03:12 (the last one, in UTC) or 2h (ago)"


def moment(text: str, now: datetime) -> datetime:
    """Return the moment that a text names, in UTC where it names no zone. Raises WrongUsage."""
    span = _SPAN.fullmatch(text)
    try:
        if span is not None and text:
            days, hours, minutes, seconds = (int(n or 0) for n in span.groups())
            return now - timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if re.fullmatch(r"\d\d?:\d\d(:\d\d)?Z?", text):
            clock = time.fromisoformat(text.removesuffix("Z").zfill(5))
            found = datetime.combine(now.astimezone(UTC).date(), clock, UTC)
            return found if found <= now else found - timedelta(days=1)
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise WrongUsage(f"{text!r} is no time; say {_EXAMPLES}", parameter="--at") from None
    found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    if found > now:
        raise WrongUsage(f"{text} is still to come", parameter="--at")
    return found
