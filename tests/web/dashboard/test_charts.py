"""Charts: what they say in words, and that shapes agree with numbers."""

from __future__ import annotations

import re

from sortie.model import Spending
from sortie.web.dashboard.activity import Bucket
from sortie.web.dashboard.charts import charts, svg


def test_what_failed_hangs_below_the_axis() -> None:
    """Success stands upwards and failure hangs downwards, so that no colour is needed."""
    ended, *_ = charts((Bucket(begins_at=0, succeeded=3, failed=1),))

    picture = svg(ended)

    axis = float(re.findall(r'class="axis"[^>]* y1="([0-9.]+)"', picture)[0])
    tops = {
        kind: float(y) for kind, y in re.findall(r'rect class="(\w+)"[^>]* y="([0-9.]+)"', picture)
    }
    assert tops["good"] < axis == tops["bad"]
    assert "▲ 3 succeeded · ▼ 1 failed" in picture
    assert "<title>00:00Z: 3 succeeded, 1 failed, 0 stopped" in picture


def test_what_no_agent_tells_has_no_chart() -> None:
    """Credits that nobody reported are no zero, and no turns have no duration."""
    _, turns = charts((Bucket(begins_at=0), Bucket(begins_at=900)))

    assert turns.told == "no turn ended"


def test_what_agents_tell_has_a_chart_each() -> None:
    """Cost, credits and tokens, with sums; where one bar does not know an amount it has none."""
    one = Spending(input_tokens=1200, output_tokens=34, cost_usd=0.5)
    other = Spending(credits=0.25, output_tokens=1)

    _, _, *used = charts(
        (Bucket(begins_at=0, spent=one), Bucket(begins_at=900, spent=other), Bucket(begins_at=1800))
    )

    assert [(chart.title, chart.told) for chart in used] == [
        ("Cost", "$0.50 in all"),
        ("Credits", "0.25 credits in all"),
        ("Tokens", "1,235 tokens in all"),
    ]
    assert svg(used[0]).count('<rect class="plain"') == 1


def test_durations_are_means() -> None:
    """The caption tells the mean of all turns, not that of the bars."""
    _, turns = charts(
        (
            Bucket(begins_at=0, turns=3, turn_seconds=30.0),
            Bucket(begins_at=900, turns=1, turn_seconds=70.0),
        )
    )

    assert turns.told == "25.0s on average, 4 turns"
