"""One connection, its statements by name and its transactions; used by one thread only."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sortie.model import StoreError
from sortie.store.statements import queries

Row = dict[str, Any]
Value = str | bytes | int | float | None


class Database:
    """A connection to the file at ``path``, in autocommit mode outside ``transaction``.

    Every method raises sqlite3.Error. ``identity`` is that of the file opened. A text with lone
    surrogates, which SQLite cannot hold as text, is stored as bytes and comes back as it was.
    """

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        connection.row_factory = _row
        self._connection = connection
        self.path = path
        self.identity = file_identity(path)

    def rows(self, query: str, **values: Value) -> list[Row]:
        """Run a named statement and return its rows."""
        return list(self._run(query, values))

    def row(self, query: str, **values: Value) -> Row:
        """Run a named statement that always has a row, and return the first."""
        return self.rows(query, **values)[0]

    def change(self, query: str, **values: Value) -> int:
        """Run a named statement and return the number of rows it changed."""
        return self._run(query, values).rowcount

    def execute(self, statement: str) -> None:
        """Run a statement of a migration."""
        self._connection.execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything inside, durably, or nothing."""
        with self._transaction("FULL"):
            yield

    @contextmanager
    def forgettable_transaction(self) -> Iterator[None]:
        """Write everything inside, or nothing; a crash of the machine may undo it, as long as
        nothing was written durably after it."""
        with self._transaction("NORMAL"):
            yield

    @contextmanager
    def _transaction(self, synchronous: str) -> Iterator[None]:
        # Each says how it is to be synchronized, so that none depends on how another has ended.
        self._connection.execute(f"PRAGMA synchronous = {synchronous}")
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Undo everything inside; what fits into memory never reaches the disk."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        self._connection.close()

    def _run(self, query: str, values: dict[str, Value]) -> sqlite3.Cursor:
        bound = {name: _storable(value) for name, value in values.items()}
        return self._connection.execute(queries()[query], bound)


def file_identity(path: str) -> tuple[int, int]:
    """Return what tells a file from another of the same name. Raises StoreError if it is gone."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise StoreError(f"cannot find the database {path}: {error.strerror}") from error
    return found.st_dev, found.st_ino


def _storable(value: Value) -> Value:
    if not isinstance(value, str) or value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode(errors="surrogatepass")
    return value


def _row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> Row:
    names = (column[0] for column in cursor.description)
    return {name: _restored(value) for name, value in zip(names, values, strict=True)}


def _restored(value: Any) -> Any:
    return value.decode(errors="surrogatepass") if isinstance(value, bytes) else value
