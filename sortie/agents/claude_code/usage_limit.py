"""When a usage limit ends, as Claude Code and the provider word it; pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = timedelta(days=1)
_LATEST = 32_503_680_000  # the year 3000

_LIMIT = re.compile(
    r"hit your .{0,60}limit|limit reached|usage limits|out of (?:extra usage|usage credits)"
    r"|credit balance is too low",
    re.IGNORECASE,
)

_SECONDS = re.compile(r"limit reached\|(\d{9,13})\b")

_INSTANT = re.compile(r"regain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC")

_CLOCK = re.compile(
    r"""\bresets\ (?:at\ )?
    (?: (?P<month>[A-Z][a-z]{2})[a-z]*\ (?P<day>\d{1,2}) (?:,\ (?P<year>\d{4}))? (?:,|\ at)?\ )?
    (?P<hour>\d{1,2}) (?: :(?P<minute>\d\d) )? \ ?(?P<half>[ap]m)
    \ \((?P<zone>[A-Za-z][\w+/-]{0,63})\)""",
    re.VERBOSE,
)


def names_a_limit(text: str) -> bool:
    """Tell whether an error's text says that an account may use no more for now."""
    return _LIMIT.search(text) is not None


def from_seconds(value: object) -> datetime | None:
    """Return a time that is given in seconds since 1970; None for what is none."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LATEST:
        return datetime.fromtimestamp(value, UTC)
    return None


def reset_time(text: str, now: datetime) -> datetime | None:
    """Return when the limit ends that an error's text is about, None where it does not say so.

    ``now`` has a zone. A time of day without a zone could be anybody's, and is none.
    """
    if found := _SECONDS.search(text):
        seconds = int(found[1])
        return from_seconds(seconds / 1000 if seconds >= _LATEST else seconds)
    try:
        if found := _INSTANT.search(text):
            return datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00")
        if found := _CLOCK.search(text):
            return _next(found, now)
    except (ValueError, OverflowError):
        return None
    return None


def _next(found: re.Match[str], now: datetime) -> datetime | None:
    """Return the next time that a clock in its zone shows this. Raises ValueError."""
    zone = _zone(found["zone"])
    if zone is None or not 1 <= int(found["hour"]) <= 12:
        return None
    hour = int(found["hour"]) % 12 + (12 if found["half"] == "pm" else 0)
    here = now.astimezone(zone)
    then = here.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
    if found["month"] is None:
        return (then if then > here else then + _DAY).astimezone(UTC)
    month = _MONTHS.index(found["month"].lower()) + 1
    year = int(found["year"] or here.year)
    then = then.replace(year=year, month=month, day=int(found["day"]))
    if found["year"] is None and then < here - _DAY:
        then = then.replace(year=year + 1)
    return then.astimezone(UTC)


def _zone(name: str) -> tzinfo | None:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
