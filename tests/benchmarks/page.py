"""Write what was measured into the table of ``docs/performance.md``.

python -m tests.benchmarks.page FILE     FILE is what ``python -m tests.benchmarks --json`` wrote

Rows that FILE does not have keep what the page says of them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.report import HEADINGS, number
from tests.benchmarks.row import Row
from tests.benchmarks.table import ROWS

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
_TABLE = re.compile(r"^\| row \|.*?\n\n", re.DOTALL | re.MULTILINE)
_MACHINE = re.compile(r"^Measured on .*$", re.MULTILINE)
_UNKNOWN = ("", "", "", "")


def main(arguments: list[str]) -> int:
    """Fill the page with the results in the file that is named; return the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write(__doc__ or "")
        return 2
    results = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    if results["short"]:
        sys.stderr.write("these are results of --short, whose numbers say nothing\n")
        return 1
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    return 0


def filled(page: str, results: Mapping[str, Any]) -> str:
    """Return a page with the results in its table, and where they are from in the line above."""
    (old,) = _TABLE.findall(page)
    (_,) = _MACHINE.findall(page)
    measured = dict(_rows_of(old)) | {row["name"]: _measured(row) for row in results["rows"]}
    lines = [HEADINGS, ("---",) * len(HEADINGS)]
    lines += [(*_about(row), *_ends(row, measured.get(row.name, _UNKNOWN))) for row in ROWS]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    where = f"Measured on {where_measured(results['machine'])}"
    page = page.replace(old, f"{table}\n")
    return _MACHINE.sub(lambda _: where, page)


def where_measured(machine: Mapping[str, Any]) -> str:
    """Describe a machine, and when something was measured on it."""
    return (
        f"{machine['cores']} cores ({machine['processor']}, {machine['architecture']}),"
        f" {machine['kernel']}, Python {machine['python']}, with a load of {machine['load']}"
        f" before, on {machine['at'][:10]}."
    )


def _about(row: Row) -> tuple[str, ...]:
    sign = "≥ " if row.more_is_better else ""
    return (f"`{row.name}`", row.what, row.unit, "" if row.bar is None else f"{sign}{row.bar:g}")


def _ends(row: Row, measured: tuple[str, ...]) -> tuple[str, ...]:
    return (*measured, row.baseline)


def _rows_of(table: str) -> list[tuple[str, tuple[str, ...]]]:
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in table.splitlines()[2:]
        if line
    ]
    return [(row[0].strip("`"), tuple(row[4:8])) for row in rows]


def _measured(row: Mapping[str, Any]) -> tuple[str, ...]:
    ours, baseline, met = row["ours"], row["baseline"], row["met"]
    return (
        number(ours),
        "" if met is None else ("yes" if met else "no"),
        "" if baseline is None else number(baseline),
        number(ours / baseline) if baseline else "",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
