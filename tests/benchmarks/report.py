"""What was measured, as a table for people and as JSON for machines."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks.row import Row, Value

HEADINGS = ("row", "what", "unit", "bar", "ours", "met", "baseline", "ratio", "beside")


def machine() -> dict[str, object]:
    """Describe where this runs; ``load`` is the one of the last minute."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "architecture": platform.machine(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def as_json(
    rows: Sequence[Row], values: Mapping[str, Value], where: Mapping[str, object]
) -> dict[str, object]:
    """Return the results for ``json.dumps``; a row that was not measured is left out."""
    return {
        "machine": dict(where),
        "rows": [
            {
                "name": row.name,
                "what": row.what,
                "unit": row.unit,
                "bar": row.bar,
                "more_is_better": row.more_is_better,
                "ours": values[row.name].ours,
                "met": row.is_met(values[row.name]),
                "baseline": values[row.name].baseline,
                "beside": row.baseline,
                "also": dict(values[row.name].also),
            }
            for row in rows
            if row.name in values
        ],
    }


def as_text(rows: Sequence[Row], values: Mapping[str, Value]) -> str:
    """Return a table in columns, and below it what else was measured."""
    cells = [HEADINGS, *(_cells(row, values[row.name]) for row in rows if row.name in values)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    also = [
        f"{row.name}: {what} {number(amount)}{'' if '[' in what else f' {row.unit}'}"
        for row in rows
        if row.name in values
        for what, amount in values[row.name].also.items()
    ]
    return "\n".join([*lines, *([""] if also else []), *also])


def number(amount: float) -> str:
    """Write a number with three digits that count."""
    if amount >= 100:
        return f"{amount:,.0f}"
    return f"{amount:.{2 if amount < 10 else 1}f}"


def _cells(row: Row, value: Value) -> tuple[str, ...]:
    met = row.is_met(value)
    ratio = value.ours / value.baseline if value.baseline else None
    sign = "≥ " if row.more_is_better else ""
    return (
        row.name,
        row.what,
        row.unit,
        "" if row.bar is None else f"{sign}{row.bar:g}",
        number(value.ours),
        "" if met is None else ("yes" if met else "no"),
        "" if value.baseline is None else number(value.baseline),
        "" if ratio is None else number(ratio),
        row.baseline,
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor()
