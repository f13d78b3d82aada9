"""Whether an agent's words say that its account may use no more for now, and until when; pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

_LIMIT = re.compile(
    r"""\b(?: (?:usage|session|weekly|monthly|daily|quota|plan|\d+-hour)\ limit\b .{0,40}
              (?: reached | exceeded | hit )
            | (?: reached | exceeded | hit )\ (?:your|the|its) .{0,40}
              \b(?: usage | session | weekly | monthly | daily | plan | quota )\b
            | (?: quota | capacity )\b .{0,40} (?: exceeded | exhausted | reset )
            | exhausted\ your .{0,40} (?: quota | capacity | credits )
            | hit\ your .{0,60}\blimit\b
            | out\ of\ (?: credits | premium\ requests | (?:extra\ )? usage )
            | limit\ reached\b .{0,40} (?: \| | reset )
            | credit\ balance\ is\ too\ low
            )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)

_SECONDS = re.compile(r"\blimit reached\|(\d{9,13})\b", re.IGNORECASE)
_LATEST = 32_503_680_000  # the year 3000; a larger number is in milliseconds

_INSTANT = re.compile(
    r"\b(\d{4}-\d\d-\d\d)(?:[T ]| at )(\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?"
    r"(Z|UTC|[+-]\d\d:?\d\d)\b"
)

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_SPANS = re.compile(
    r"\b(?:again|resets?|reset|retry|available)\b[^0-9]{0,20}\b(?:in|after)\s+"
    r"(?P<spans>(?:\d{1,6}(?:\.\d{1,9})?\s*(?:d|h|m|s)[a-z]*[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)\s*([dhms])", re.IGNORECASE)

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = timedelta(days=1)
_CLOCK = re.compile(
    r"""\bresets\ (?:at\ )?
    (?: (?P<month>[A-Z][a-z]{2})[a-z]*\ (?P<day>\d{1,2}) (?:,\ (?P<year>\d{4}))? (?:,|\ at)?\ )?
    (?P<hour>\d{1,2}) (?: :(?P<minute>\d\d) )? \ ?(?P<half>[ap]m)
    \ \((?P<zone>[A-Za-z][\w+/-]{0,63})\)""",
    re.VERBOSE,
)

_READ = 4096
"""Characters at the beginning of a text that are searched."""


def names_a_limit(text: str) -> bool:
    """Tell whether an error's text is about what an account may use, not about the pace."""
    return _LIMIT.search(text[:_READ]) is not None


def from_seconds(value: object) -> datetime | None:
    """Return a time that is given in seconds since 1970; None for any other value."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LATEST:
        return datetime.fromtimestamp(value, UTC)
    return None


def reset_time(text: str, now: datetime) -> datetime | None:
    """Return when the limit ends that a text is about, None where the text does not say so.

    ``now`` has a zone. A time of day without a zone is ambiguous, and is ignored.
    """
    said = text[:_READ]
    if found := _SECONDS.search(said):
        seconds = int(found[1])
        return from_seconds(seconds / 1000 if seconds >= _LATEST else seconds)
    try:
        if found := _SPANS.search(said):
            return now + _sum(found["spans"])
        if found := _INSTANT.search(said):
            zone = "+00:00" if found[3] in ("Z", "UTC") else found[3]
            return datetime.fromisoformat(f"{found[1]}T{found[2]}{zone}").astimezone(UTC)
        if found := _CLOCK.search(said):
            return _next(found, now)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _sum(spans: str) -> timedelta:
    total = timedelta()
    for number, unit in _SPAN.findall(spans):
        total += timedelta(**{_UNITS[unit.lower()]: float(number)})
    return total


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
