"""One SQLite connection: its statements by name, its transactions, its errors and its identity.

One thread uses it.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

from sortie.model import ProcessIdentity, StoreError

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


class DatabaseIdentity(Struct, frozen=True, kw_only=True):
    """A database, as its last daemon has left it.

    ``file`` is the file that it had, by device and inode, and ``here`` the one that is open now:
    they differ where the file was copied, or moved to another file system. ``path_named``: an
    earlier version, which named what it started by the path, may have left something.
    """

    id: str
    here: tuple[int, int]
    file: tuple[int, int] | None
    daemon: ProcessIdentity | None
    path_named: bool

    @property
    def is_copy(self) -> bool:
        """Whether the last daemon had another file."""
        return self.file is not None and self.file != self.here


def read_identity(database: Database) -> DatabaseIdentity:
    """Return what a database is."""
    row = database.row("identity")
    begun = row["inode"] is not None
    return DatabaseIdentity(
        id=row["id"],
        here=_signed_pair(database.identity),
        file=(row["device"], row["inode"]) if begun else None,
        daemon=ProcessIdentity(pid=row["pid"], started_at=row["started_at"]) if begun else None,
        path_named=bool(row["path_named"]),
    )


def begin_life(database: Database, *, process: ProcessIdentity, database_id: str) -> None:
    """Note which process is the daemon of a database from now on, and under which id."""
    device, inode = _signed_pair(database.identity)
    with database.transaction():
        database.change(
            "begin_life",
            id=database_id,
            device=device,
            inode=inode,
            pid=process.pid,
            started_at=process.started_at,
        )


def forget_path_name(database: Database) -> None:
    """Note that nothing is left that is named by the path."""
    with database.transaction():
        database.change("forget_path_name")


def _signed_pair(identity: tuple[int, int]) -> tuple[int, int]:
    """Return two numbers of 64 bits as SQLite can hold them."""
    device, inode = (number - (1 << 64) if number >= 1 << 63 else number for number in identity)
    return device, inode
