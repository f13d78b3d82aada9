"""A connection to a SQLite file: its transactions, its errors and its identity."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sortie.model import StoreError
from sortie.store.database import Database, Row, Value, queries
from sortie.store.filesystems import is_doubtful

_PRIMARY = 0xFF  # an extended code holds its primary code in the low byte

_SQLITE_ADVICE: Mapping[int, str] = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space; a daemon that runs goes on then",
    sqlite3.SQLITE_READONLY: (
        "it is read-only; make the file and its directory writable for the user of the daemon"
    ),
    sqlite3.SQLITE_PERM: "access is denied; make it readable and writable for this user",
    sqlite3.SQLITE_BUSY: "another process keeps it locked; find it with `fuser` and end it",
    sqlite3.SQLITE_LOCKED: "another process keeps it locked; find it with `fuser` and end it",
    sqlite3.SQLITE_CORRUPT: (
        "it is damaged; stop the daemon, keep a copy, and restore a backup or use "
        "`sqlite3 FILE .recover`"
    ),
    sqlite3.SQLITE_NOTADB: "it is not a database; name another file with db_path",
    sqlite3.SQLITE_CANTOPEN: (
        "it or its -wal and -shm files cannot be opened; check that the directory exists and "
        "that all of them belong to this user"
    ),
    sqlite3.SQLITE_IOERR: (
        "reading or writing failed; check the disk, its quota and the limit of file sizes"
    ),
    sqlite3.SQLITE_PROTOCOL: "its locks do not work; move it to a local disk with db_path",
    sqlite3.SQLITE_CONSTRAINT: "what was to be written contradicts what is recorded; report this",
}
_UNEXPECTED = "SQLite gave an error without a known remedy"


def explanation(error: sqlite3.Error, attempt: str, path: str) -> StoreError:
    """Return the error to raise in place of SQLite's; ``attempt`` is a verb such as "read"."""
    code = getattr(error, "sqlite_errorcode", None)
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    advice = _UNEXPECTED if code is None else _SQLITE_ADVICE.get(code & _PRIMARY, _UNEXPECTED)
    return StoreError(f"cannot {attempt} the database {path}: {advice} ({name}: {error})")


@contextmanager
def explained(attempt: str, path: str) -> Iterator[None]:
    """Turn SQLite's errors, and numbers beyond its range, into StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        raise explanation(error, attempt, path) from error
    except OverflowError as error:
        raise StoreError(f"cannot {attempt} the database {path}: {error}") from error


class SqliteDatabase(Database):
    """A connection to the file at ``name``; ``identity`` is that of the file opened."""

    REFUSALS = (
        OverflowError,
        sqlite3.DataError,
        sqlite3.IntegrityError,
        sqlite3.InterfaceError,
        sqlite3.ProgrammingError,
    )
    CONTRADICTIONS = (sqlite3.IntegrityError,)

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        connection.row_factory = _row
        self._connection = connection
        self.name = path
        self.identity = file_identity(path)

    def rows(self, query: str, **values: Value) -> list[Row]:
        """Run a named statement and return its rows."""
        return list(self._run(query, values))

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

    def every_row(self, table: str, order: str) -> Iterator[Row]:
        """Yield all rows of a table, by some columns."""
        yield from self._connection.execute(f"SELECT * FROM {table} ORDER BY {order}")

    def insert_rows(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows to a table."""
        for row in rows:
            names = ", ".join(row)
            bound = {name: _storable(value) for name, value in row.items()}
            places = ", ".join(f":{name}" for name in row)
            self._connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", bound)

    def clear(self, table: str) -> None:
        """Delete all rows of a table."""
        self._connection.execute(f"DELETE FROM {table}")

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        (row,) = self._connection.execute(f"SELECT count(*) AS rows FROM {table}")
        return int(row["rows"])

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Undo everything inside; what fits into memory never reaches the disk."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def explained(self, attempt: str) -> AbstractContextManager[None]:
        """Turn SQLite's errors, and numbers beyond its range, into StoreError."""
        return explained(attempt, self.name)

    def check(self, *, doubted: bool) -> None:
        """See that the file is still the one at its path, and can be written.

        A row is committed only where there is a doubt: after a failure, and where the disk is
        nearly full or read-only. A daemon that has nothing to do leaves the disk alone.
        """
        if file_identity(self.name) != self.identity:
            raise StoreError(
                f"the database {self.name} was replaced while in use, and what is recorded now "
                "will be lost; restart the daemon"
            )
        if doubted or is_doubtful(self.name):
            prove_writable(self)
        else:
            try_to_write(self)

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        self._connection.close()

    def _run(self, query: str, values: dict[str, Value]) -> sqlite3.Cursor:
        bound = {name: _storable(value) for name, value in values.items()}
        return self._connection.execute(queries()[query], bound)


def prove_writable(database: SqliteDatabase) -> None:
    """Write and commit a row."""
    with database.transaction():
        database.change("prove_writable")


def try_to_write(database: SqliteDatabase) -> None:
    """Write a row and take it back: locks and permissions are tried, and the disk is not touched.

    A full disk is not noticed so.
    """
    with database.rolled_back():
        database.change("prove_writable")


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
