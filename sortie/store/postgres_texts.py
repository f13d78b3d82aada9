"""How texts that PostgreSQL cannot hold are kept, and what its numbers become."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from psycopg.adapt import Buffer, Loader

from sortie.store.database import Row, Value

_ESCAPED = "\x1aescaped "
"""Begins a text that is kept as JSON: it has a NUL or a lone surrogate, or begins like this."""


def storable(value: Value) -> Value:
    """Return a value as PostgreSQL can hold it."""
    if not isinstance(value, str):
        return value
    if "\0" in value or value.startswith(_ESCAPED) or not _is_unicode(value):
        return _ESCAPED + json.dumps(value)
    return value


def restored(value: Any) -> Any:
    """Return what ``storable`` was given."""
    if isinstance(value, str) and value.startswith(_ESCAPED):
        return json.loads(value.removeprefix(_ESCAPED))
    return value


def storable_row(values: Mapping[str, Value]) -> Row:
    """Return named values as PostgreSQL can hold them."""
    return {name: storable(value) for name, value in values.items()}


def restored_row(row: Row) -> Row:
    """Return what ``storable_row`` was given."""
    return {name: restored(value) for name, value in row.items()}


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class IntegerLoader(Loader):
    """Reads sums of integers, which PostgreSQL has as numbers of any length."""

    def load(self, data: Buffer) -> int:
        """Return the number."""
        return int(bytes(data))
