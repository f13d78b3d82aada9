"""What SQLite's errors mean to an operator."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sortie.model import StoreError

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
