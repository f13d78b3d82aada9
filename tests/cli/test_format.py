"""Spans of time for people."""

from __future__ import annotations

import pytest

from sortie.cli.format import span


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (-5, "0s"),
        (0.9, "0s"),
        (59.9, "59s"),
        (60, "1m00s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (86_399, "23h59m"),
        (86_400, "1d00h"),
        (1_000_000, "11d13h"),
    ],
)
def test_a_span_has_two_units_at_most(seconds: float, written: str) -> None:
    """The larger units matter; nothing is ever negative."""
    assert span(seconds) == written
