"""The rows, measured in their short mode: that they work, not how quick anything is."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from tests.benchmarks import remote_turn, transports
from tests.benchmarks.__main__ import main, measure
from tests.benchmarks.report import as_text, number
from tests.benchmarks.row import Measure, Row, Scale, Value, named
from tests.benchmarks.table import ROWS
from tests.transports.ssh.sshd import requires_sshd

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="CPU clocks of others are Linux's")

MEASURES = {row.measure: row.name.partition(".")[0] for row in reversed(ROWS)}


REMOTE = (remote_turn.remote_turns, transports.transports)

QUICK = {"idle", "scheduler", "store", "turn"}
"""One of a daemon at rest, one of a daemon at work, and two without one: what most are made of.
The others take ten times as long, and find no fault of the program."""


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(
            one,
            id=name,
            marks=[
                *([requires_sshd] if one in REMOTE else []),
                *([] if name in QUICK else [pytest.mark.full]),
            ],
        )
        for one, name in MEASURES.items()
    ],
)
def test_a_measure_measures_its_rows(one: Measure) -> None:
    """Each row of the table gets a number and a baseline from the same run; what is spent is more
    than nothing, and only a difference of memory may be less."""
    values = one(Scale(short=True))

    rows = {row.name: row for row in ROWS if row.measure is one}
    assert set(values) == set(rows)
    for name, value in values.items():
        numbers = (value.ours, 0.0 if value.baseline is None else value.baseline)
        assert all(map(math.isfinite, numbers)), name
        assert rows[name].unit == "KiB" or (value.ours > 0 and numbers[1] >= 0), name


def row(name: str, measure: Measure, *, bar: float | None = 2.0, more: bool = False) -> Row:
    return Row(
        name=name,
        what=f"what {name} is",
        unit="ms",
        baseline="nothing",
        measure=measure,
        bar=bar,
        more_is_better=more,
    )


def test_rows_of_one_measure_are_measured_at_once() -> None:
    """A measure runs once however many rows it has, and one that fails hides no other."""
    asked = []

    def pair(scale: Scale) -> dict[str, Value]:
        asked.append(scale)
        return {"a": Value(ours=1.0), "b": Value(ours=2.0, baseline=1.0)}

    def broken(_scale: Scale) -> dict[str, Value]:
        raise LookupError("nothing to be had")

    rows = [row("x", broken), row("a", pair), row("b", pair)]

    values, failed = measure(rows, Scale())

    assert asked == [Scale()]
    assert failed
    assert set(values) == {"a", "b"}


def test_bars_are_met_from_the_right_side() -> None:
    """Less is better, unless a row says that more is; without a bar nothing is met or missed."""

    def none(_scale: Scale) -> dict[str, Value]:
        return {}

    assert row("a", none).is_met(Value(ours=2.0)) is True
    assert row("a", none).is_met(Value(ours=2.1)) is False
    assert row("a", none, more=True).is_met(Value(ours=2.0)) is True
    assert row("a", none, more=True).is_met(Value(ours=1.9)) is False
    assert row("a", none, bar=None).is_met(Value(ours=1.9)) is None


def test_tables_show_what_was_measured() -> None:
    """People get columns, and what else was measured below; a row without a value is left out."""

    def none(_scale: Scale) -> dict[str, Value]:
        return {}

    rows = [row("a", none), row("missed", none), row("b", none, more=True, bar=35)]
    values = {
        "a": Value(ours=1.234, baseline=0.5, also={"the agent": 3.0}),
        "b": Value(ours=1234.5),
    }

    assert as_text(rows, values).splitlines() == [
        "row  what       unit  bar   ours   met  baseline  ratio  beside",
        "a    what a is  ms    2     1.23   yes  0.50      2.47   nothing",
        "b    what b is  ms    ≥ 35  1,234  yes                   nothing",
        "",
        "a: the agent 3.00 ms",
    ]
    assert [number(amount) for amount in (0.004, 9.99, 10.04, 99.96)] == [
        "0.00",
        "9.99",
        "10.0",
        "100.0",
    ]


def test_rows_are_chosen_by_name_or_group() -> None:
    """A group is what stands before a dot; the order is the table's."""
    assert [row.name for row in named(ROWS, ["turn", "version"])] == [
        "version",
        "turn.cpu",
        "turn.gap",
    ]
    assert named(ROWS, []) == list(ROWS)
    with pytest.raises(KeyError):
        named(ROWS, ["ver"])


def test_the_command_writes_what_machines_read(tmp_path: Path) -> None:
    """The JSON has the machine, and each row with its bar, ours, and the baseline."""
    there = tmp_path / "results.json"

    assert main(["version", "--short", "--json", str(there)]) == 0

    results = json.loads(there.read_text())
    assert results["short"] is True
    assert {"cores", "kernel", "python", "load"} <= set(results["machine"])
    (found,) = results["rows"]
    assert (found["name"], found["unit"], found["bar"]) == ("version", "ms", 60)
    assert found["ours"] > 0
    assert found["baseline"] > 0
