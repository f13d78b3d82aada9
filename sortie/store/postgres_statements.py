"""The named statements as PostgreSQL has them; ``queries.sql`` has them as SQLite does."""

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


@cache
def translated(query: str) -> bytes:
    """Return a named statement."""
    text = queries()[query]
    for pattern, replacement in _DIFFERENCES:
        text = pattern.sub(replacement, text)
    return text.encode()
