"""The statements of PostgreSQL: the named ones, which ``queries.sql`` has as SQLite takes them."""

from __future__ import annotations

import re
from functools import cache

from sortie.store.database import queries

_DIFFERENCES = (
    (re.compile(r":(\w+)"), r"%(\1)s"),
    (re.compile(r"\bmax\((?=\w+, )"), "greatest("),
    (re.compile(r" INDEXED BY \w+"), ""),
    (re.compile(r"\bWHERE delivery_pending\b"), "WHERE delivery_pending <> 0"),
)
"""What is written otherwise for PostgreSQL than in ``queries.sql``."""

IDENTITY = """
SELECT (SELECT system_identifier FROM pg_control_system()) AS server,
  (SELECT oid::bigint FROM pg_database WHERE datname = current_database()) AS database,
  (SELECT oid::bigint FROM pg_namespace WHERE nspname = current_schema()) AS schema
"""
"""What tells the schema of a server from all others."""


@cache
def translated(query: str) -> bytes:
    """Return a named statement."""
    text = queries()[query]
    for pattern, replacement in _DIFFERENCES:
        text = pattern.sub(replacement, text)
    return text.encode()
