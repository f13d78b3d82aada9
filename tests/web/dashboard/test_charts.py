"""Charts: what they say in words, and that shapes agree with numbers."""

from __future__ import annotations

import re

from sortie.web.dashboard.activity import Bucket
from sortie.web.dashboard.charts import charts, svg


def test_what_failed_hangs_below_the_axis() -> None:
    """Success stands upwards and failure hangs downwards, so that no colour is needed."""
    ended, _, _ = charts((Bucket(begins_at=0, succeeded=3, failed=1),))

    picture = svg(ended)

    axis = float(re.findall(r'class="axis"[^>]* y1="([0-9.]+)"', picture)[0])
    tops = {
        kind: float(y) for kind, y in re.findall(r'rect class="(\w+)"[^>]* y="([0-9.]+)"', picture)
    }
    assert tops["good"] < axis == tops["bad"]
    assert "▲ 3 succeeded · ▼ 1 failed" in picture
    assert "<title>00:00Z: 3 succeeded, 1 failed, 0 stopped" in picture


def test_what_is_not_known_is_not_drawn() -> None:
    """Credits that nobody reported are no zero, and no turns have no duration."""
    _, turns, spent = charts((Bucket(begins_at=0), Bucket(begins_at=900)))

    assert (turns.told, spent.told) == ("no turn ended", "not reported")
    assert "<rect" not in svg(spent)


def test_durations_are_means() -> None:
    """The caption tells the mean of all turns, not that of the bars."""
    _, turns, _ = charts(
        (
            Bucket(begins_at=0, turns=3, turn_seconds=30.0),
            Bucket(begins_at=900, turns=1, turn_seconds=70.0),
        )
    )

    assert turns.told == "25.0s on average, 4 turns"
