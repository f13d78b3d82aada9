"""Moments as people name them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sortie.cli.moments import moment
from sortie.cli.parameters import WrongUsage

NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-28T03:12", "2026-11-28T03:12:00"),
        ("2026-11-27 23:59:30", "2026-11-27T23:59:30"),
        ("2026-11-28T03:12:00Z", "2026-11-28T03:12:00"),
        ("2026-11-28T03:12+01:00", "2026-11-28T02:12:00"),
        ("03:12", "2026-11-28T03:12:00"),
        ("3:12", "2026-11-28T03:12:00"),
        ("23:12:05", "2026-11-27T23:12:05"),
        ("2h", "2026-11-28T07:30:00"),
        ("1d2h30m5s", "2026-11-27T06:59:55"),
    ],
)
def test_a_moment_is_understood(text: str, expected: str) -> None:
    """With a date, the last time of that hour, or so long ago; without a zone it is UTC."""
    assert moment(text, NOW) == datetime.fromisoformat(f"{expected}+00:00")


@pytest.mark.parametrize("text", ["", "yesterday", "25:00", "2026-13-01", "99999999d", "3:5"])
def test_nonsense_is_refused(text: str) -> None:
    """The sentence shows what can be said."""
    with pytest.raises(WrongUsage, match=r"no time; say 2026-11-28T03:12, 03:12"):
        moment(text, NOW)


def test_the_future_is_refused() -> None:
    """It has not been recorded yet."""
    with pytest.raises(WrongUsage, match="still to come"):
        moment("2026-11-28T10:00", NOW)
