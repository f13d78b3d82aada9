"""When it is quiet."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from sortie.config.notifications import QuietHours
from sortie.notifications.quiet import is_quiet, quiet_until

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = QuietHours.model_validate({"from": "22:00", "to": "07:00", "timezone": "Europe/Berlin"})
LUNCH = QuietHours.model_validate({"from": "12:00", "to": "13:30", "timezone": "Europe/Berlin"})


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


@pytest.mark.parametrize(
    ("hours", "time", "quiet"),
    [
        (NIGHT, "2026-11-22T21:59", False),
        (NIGHT, "2026-11-22T22:00", True),
        (NIGHT, "2026-11-23T03:00", True),
        (NIGHT, "2026-11-23T06:59", True),
        (NIGHT, "2026-11-23T07:00", False),
        (LUNCH, "2026-11-23T11:59", False),
        (LUNCH, "2026-11-23T12:00", True),
        (LUNCH, "2026-11-23T13:30", False),
        (None, "2026-11-23T12:00", False),
    ],
)
def test_hours_are_quiet_by_their_clock(hours: QuietHours | None, time: str, quiet: bool) -> None:
    """The beginning counts, the end does not, and they may go past midnight."""
    assert is_quiet(hours, at(time)) is quiet


@pytest.mark.parametrize(
    ("hours", "time", "end"),
    [
        (NIGHT, "2026-11-22T22:00", "2026-11-23T07:00"),
        (NIGHT, "2026-11-23T06:59", "2026-11-23T07:00"),
        (NIGHT, "2026-10-24T23:00", "2026-10-25T07:00"),  # an hour longer: summer time ends
        (LUNCH, "2026-11-23T12:00", "2026-11-23T13:30"),
    ],
)
def test_the_end_is_the_next_of_its_clock(hours: QuietHours, time: str, end: str) -> None:
    """Also in the night in which the clock is changed."""
    assert quiet_until(hours, at(time)) == at(end)
