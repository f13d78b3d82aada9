"""Measure what the daemon itself costs, each row beside a bare baseline in the same run.

python -m tests.benchmarks [NAME ...] [--json FILE] [--short]

NAME is a row, or a group of rows before a dot such as ``poll``; all rows without one. CPU is the
processor time of the daemon's process with all its threads; what agents spend is not in it.
``python -m tests.benchmarks.page FILE`` writes the results into the documentation.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.benchmarks.report import as_json, as_text, machine
from tests.benchmarks.row import Measure, Row, Scale, Value, named
from tests.benchmarks.table import ROWS


def main(arguments: list[str]) -> int:
    """Obey a command line and return the exit code: 1 where a row could not be measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="NAME", help="which rows; default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--short", action="store_true", help="see that it works, in seconds")
    parser.add_argument("--list", action="store_true", help="show the rows")
    given = parser.parse_args(arguments)
    try:
        rows = named(ROWS, given.names)
    except KeyError as error:
        parser.error(f"there is no row {error}; --list shows them")
    if given.list:
        sys.stdout.writelines(f"{row.name}: {row.what}, beside {row.baseline}\n" for row in ROWS)
        return 0
    where = machine()
    values, failed = measure(rows, Scale(short=given.short))
    sys.stdout.write(f"{as_text(rows, values)}\n\n")
    sys.stdout.write(", ".join(f"{name} {value}" for name, value in where.items()) + "\n")
    if given.json is not None:
        results = as_json(rows, values, where) | {"short": given.short}
        given.json.write_text(json.dumps(results, indent=2) + "\n")
    return 1 if failed else 0


def measure(rows: Sequence[Row], scale: Scale) -> tuple[dict[str, Value], bool]:
    """Measure rows, those that belong together once; return the values, and whether one failed."""
    values: dict[str, Value] = {}
    failed = False
    measures: dict[Measure, list[str]] = {}
    for row in rows:
        measures.setdefault(row.measure, []).append(row.name)
    for one, names in measures.items():
        sys.stderr.write(f"measuring {', '.join(names)}\n")
        try:
            values |= one(scale)
        # The edge: the other rows are still worth having.
        except (Exception, pytest.skip.Exception) as error:
            failed = True
            sys.stderr.write(f"{', '.join(names)} failed: {type(error).__name__}: {error}\n")
    return values, failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
