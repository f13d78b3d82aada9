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


def test_what_agents_tell_has_a_chart_each() -> None:
    """Cost, credits and tokens, with sums; where one bar does not know an amount it has none."""
    one = Spending(input_tokens=1200, output_tokens=34, cost_usd=0.5)
    other = Spending(credits=0.25, output_tokens=1)

    _, _, *used = charts(
        (Bucket(begins_at=0, spent=one), Bucket(begins_at=900, spent=other), Bucket(begins_at=1800))
    )

    assert [(chart.title, chart.caption) for chart in used] == [
        ("Cost", "$0.50 in all"),
        ("Credits", "0.25 credits in all"),
        ("Tokens", "1,235 tokens in all"),
    ]
    assert svg(used[0]).count('<rect class="plain"') == 1
