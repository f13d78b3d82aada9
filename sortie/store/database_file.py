"""Create or find the file of a database and open it, or say why that is impossible."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import ExitStack

from sortie.model import StoreError
from sortie.store.filesystems import refuse_network
from sortie.store.schema_versions import migrate, migrations, schema_version
from sortie.store.sqlite_database import SqliteDatabase, explained, prove_writable

_SETTINGS = ("synchronous", "fullfsync", "foreign_keys", "journal_size_limit")


def open_database(path: str, busy_timeout: float) -> SqliteDatabase:
    """Open a database for writing, made or migrated where needed; call it in the owning thread.

    A new file has mode 0600, and SQLite gives its -wal and -shm files the same. ``busy_timeout``
    is how many seconds to wait for another process's lock. Raises StoreError.
    """
    place = place_of(path)
    refuse_network(place)
    _make_file(place)
    with explained("open", place), ExitStack() as undo:
        connection = sqlite3.connect(place, timeout=busy_timeout, isolation_level=None)
        undo.callback(connection.close)
        database = SqliteDatabase(connection, place)
        schema_version(database, migrations())  # before anything is changed in it
        _choose_wal(database)
        for setting in _SETTINGS:
            database.rows(setting)
        migrate(database, migrations())
        prove_writable(database)
        undo.pop_all()
    return database


def place_of(path: str) -> str:
    """Return an absolute path. Raises StoreError for one that no system can have."""
    if "\0" in path:
        raise StoreError(f"cannot open the database {path!r}: a path holds no null character")
    return os.path.abspath(path)


def _make_file(path: str) -> None:
    # An existing file is never opened here: closing it would drop the locks that other
    # connections of this process hold on it.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        _refuse_irregular(path)
    except OSError as error:
        raise StoreError(
            f"cannot create the database {path}: {error.strerror}; make its directory exist and be "
            "writable, or name another file with db_path"
        ) from error


def _refuse_irregular(path: str) -> None:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise StoreError(
            f"cannot open the database {path}: {error.strerror}; if it is a link, mend or remove it"
        ) from error
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise StoreError(f"cannot open the database {path}: it is {kind}; name a file with db_path")


def _choose_wal(database: SqliteDatabase) -> None:
    mode = database.row("journal_mode")["journal_mode"]
    if mode != "wal":
        raise StoreError(
            f"cannot open the database {database.name}: its file system has no shared memory for "
            "SQLite's write-ahead log; name a file on a local disk with db_path"
        )
