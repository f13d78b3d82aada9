"""Quiet hours: whether a moment lies in them; pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from sortie.config.notifications import QuietHours


def is_quiet(hours: QuietHours | None, at: float) -> bool:
    """Tell whether a time in Unix seconds lies in quiet hours, which may go past midnight."""
    if hours is None:
        return False
    clock = datetime.fromtimestamp(at, ZoneInfo(hours.timezone)).strftime("%H:%M")
    if hours.begin <= hours.end:
        return hours.begin <= clock < hours.end
    return clock >= hours.begin or clock < hours.end


def quiet_until(hours: QuietHours, at: float) -> float:
    """Return when the quiet hours end, in Unix seconds, that a time lies in."""
    zone = ZoneInfo(hours.timezone)
    now = datetime.fromtimestamp(at, zone)
    hour, minute = map(int, hours.end.split(":"))
    end = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if end <= now:
        end += timedelta(days=1)
    return end.timestamp()
