"""The rows, measured in their short mode: that they work, not how quick anything is."""

from __future__ import annotations

import math
import sys

import pytest

from tests.benchmarks import containers, remote_turn, sandbox
from tests.benchmarks.row import Measure, Scale
from tests.benchmarks.table import ROWS
from tests.transports.containers import requires_containers
from tests.transports.endings import requires_namespaces
from tests.transports.sandboxes import requires_bubblewrap
from tests.transports.ssh.sshd import requires_sshd

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform != "linux", reason="CPU clocks of others are Linux's"),
]

MEASURES = {row.measure: row.name.partition(".")[0] for row in reversed(ROWS)}


NEEDED: dict[Measure, list[pytest.MarkDecorator]] = {
    remote_turn.remote_turns: [requires_sshd],
    containers.programs: [requires_containers],
    sandbox.starts: [requires_namespaces, requires_bubblewrap],
}


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(
            one,
            id=name,
            marks=NEEDED.get(one, []),
        )
        for one, name in MEASURES.items()
    ],
)
def test_a_measure_measures_its_rows(one: Measure) -> None:
    """Each row of the table gets a number and a baseline from the same run; what is spent is more
    than nothing, where it is no difference of what two programs spend."""
    values = one(Scale(short=True))

    rows = {row.name: row for row in ROWS if row.measure is one}
    assert set(values) == set(rows)
    for name, value in values.items():
        baseline = 0.0 if value.baseline is None else value.baseline
        assert all(map(math.isfinite, (value.ours, baseline, *value.also.values()))), name
        assert rows[name].is_difference or (value.ours > 0 and baseline >= 0), name
