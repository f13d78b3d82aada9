"""SQL text: statements by name from ``queries.sql``, and scripts cut into statements."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

_NAME_LINE = re.compile(r"-- name: (\w+)")


@cache
def queries() -> Mapping[str, str]:
    """Return the statements of ``queries.sql`` by name."""
    text = files("sortie.store").joinpath("queries.sql").read_text(encoding="utf-8")
    return named_statements(text)


def named_statements(text: str) -> Mapping[str, str]:
    """Return the statements that stand under ``-- name:`` lines, by name.

    Raises ValueError for a name that stands twice and for a name without exactly one statement.
    """
    found: dict[str, str] = {}
    _preamble, *parts = _NAME_LINE.split(text)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        split = tuple(statements(body))
        if name in found or len(split) != 1:
            raise ValueError(f"{name}: a name stands once, over one statement")
        found[name] = split[0]
    return found


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script, triggers whole. Raises ValueError for an open end."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
    if any(line and not line.startswith("--") for line in map(str.strip, pending.splitlines())):
        raise ValueError(f"a statement without an end: {pending.strip()}")
