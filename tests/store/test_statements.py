"""SQL text is loaded by name and cut into statements."""

from __future__ import annotations

import re
import sqlite3
from importlib.resources import files

import pytest

from sortie.store.schema_versions import migrations
from sortie.store.statements import named_statements, queries, statements

SCHEMA = "".join(step.script for step in migrations())


def test_a_script_is_cut_into_statements_with_triggers_whole() -> None:
    """Semicolons inside triggers, texts and comments end nothing."""
    script = """
    -- a comment; with a semicolon
    CREATE TABLE t (a TEXT DEFAULT ';');
    CREATE TRIGGER x AFTER INSERT ON t BEGIN
      UPDATE t SET a = 'one';
      DELETE FROM t;
    END;
    -- the end
    """

    found = list(statements(script))

    connection = sqlite3.connect(":memory:")
    for statement in found:
        connection.execute(statement)
    assert len(found) == 2
    assert found[1].startswith("CREATE TRIGGER")


def test_a_script_without_its_last_semicolon_is_an_error() -> None:
    """A statement that was cut off is found when it is loaded."""
    with pytest.raises(ValueError, match="without an end: SELECT 1"):
        list(statements("SELECT 0;\nSELECT 1"))


@pytest.mark.parametrize(
    "text",
    ["-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;", "-- name: a\n", "-- name: a\nBEGIN;\nCOMMIT;"],
)
def test_a_name_stands_once_over_one_statement(text: str) -> None:
    """A name twice, without a statement or with two, is an error."""
    with pytest.raises(ValueError):
        named_statements(text)


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
