"""SQL text is loaded by name and cut into statements."""

from __future__ import annotations

import re
import sqlite3
from importlib.resources import files

import pytest

from sortie.store.database import queries
from sortie.store.schema_versions import migrations

SCHEMA = "".join(step.script for step in migrations())


@pytest.mark.parametrize("name", queries())
def test_every_query_fits_the_schema(name: str) -> None:
    """Each statement compiles on a migrated database."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    values = dict.fromkeys(re.findall(r":(\w+)", queries()[name]), 0)

    connection.execute(f"EXPLAIN {queries()[name]}", values)


def test_every_query_is_used() -> None:
    """No statement is left over: each name stands in the package's source."""
    folder = files("sortie.store")
    source = "".join(
        entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".py")
    )

    assert [name for name in queries() if f'"{name}"' not in source] == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("history", "SEARCH runs USING INDEX runs_by_start"),
        ("history_of_issue", "SEARCH runs USING INDEX runs_by_identifier"),
        ("unfinished_runs", "SCAN runs USING INDEX runs_under_way"),
        ("finish_run", "SEARCH runs USING INDEX sqlite_autoindex_runs_1"),
    ],
)
def test_a_long_history_costs_no_scan(name: str, expected: str) -> None:
    """What is asked often is answered from an index."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    values = dict.fromkeys(re.findall(r":(\w+)", queries()[name]), 0)

    plan = connection.execute(f"EXPLAIN QUERY PLAN {queries()[name]}", values).fetchall()

    assert plan[0][3].startswith(expected)
