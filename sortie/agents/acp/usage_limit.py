"""Whether an agent's words say that its account may use no more for now, and until when; pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_LIMIT = re.compile(
    r"""\b(?: (?:usage|session|weekly|monthly|daily|quota|plan|\d+-hour)\ limit\b .{0,40}
              (?: reached | exceeded | hit )
            | (?: reached | exceeded | hit )\ (?:your|the|its) .{0,40}
              \b(?: usage | session | weekly | monthly | daily | plan | quota )\b
            | (?: quota | capacity )\b .{0,40} (?: exceeded | exhausted | reset )
            | exhausted\ your .{0,40} (?: quota | capacity | credits )
            | hit\ your .{0,60}\blimit\b
            | out\ of\ (?: credits | premium\ requests | usage )
            | limit\ reached\b .{0,40} (?: \| | reset )
            )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)

_SECONDS = re.compile(r"\blimit reached\|(\d{9,13})\b", re.IGNORECASE)

_INSTANT = re.compile(
    r"\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?(Z|UTC|[+-]\d\d:?\d\d)\b"
)

_UNITS = (("days", "d"), ("hours", "h"), ("minutes", "m"), ("seconds", "s"))
_SPANS = re.compile(
    r"\b(?:again|resets?|reset|retry|available)\b[^0-9]{0,20}\b(?:in|after)\s+"
    r"(?P<spans>(?:\d{1,6}(?:\.\d{1,9})?\s*(?:d|h|m|s)[a-z]*[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)\s*([dhms])", re.IGNORECASE)

_READ = 4096
"""Characters of a text that are looked at; what is said comes first."""


def names_a_limit(text: str) -> bool:
    """Tell whether an error's text is about what an account may use, not about the pace."""
    return _LIMIT.search(text[:_READ]) is not None


def reset_time(text: str, now: datetime) -> datetime | None:
    """Return when the limit ends that a text is about, None where it does not say so.

    ``now`` has a zone. A time of day without a date and zone could be anybody's, and is none.
    """
    said = text[:_READ]
    try:
        if found := _SECONDS.search(said):
            seconds = int(found[1])
            return datetime.fromtimestamp(seconds / 1000 if seconds > 10**11 else seconds, UTC)
        if found := _SPANS.search(said):
            return now + _sum(found["spans"])
        if found := _INSTANT.search(said):
            zone = "+00:00" if found[2] in ("Z", "UTC") else found[2]
            return datetime.fromisoformat(f"{found[1]}{zone}").astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _sum(spans: str) -> timedelta:
    units = {short: unit for unit, short in _UNITS}
    total = timedelta()
    for number, unit in _SPAN.findall(spans):
        total += timedelta(**{units[unit.lower()]: float(number)})
    return total
