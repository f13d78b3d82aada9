"""Read history beside a daemon that writes, or without one, and leave no trace."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import TypeVar, cast
from urllib.parse import quote

from msgspec import Struct

from sortie.config.store import StoreSettings
from sortie.model import RunId, StoreError
from sortie.store import DayRow, HistoryRow, Recovered, RuleRow
from sortie.store.database import Database
from sortie.store.database_file import place_of
from sortie.store.opening import postgres_module
from sortie.store.outbox import ListedNotification, read_listed
from sortie.store.record_reader import (
    read_days,
    read_diff,
    read_newest_run,
    read_recovered,
    read_rules,
    read_run,
    read_runs,
)
from sortie.store.schema_versions import migrations, require_schema
from sortie.store.sqlite_database import SqliteDatabase, explained

T = TypeVar("T")

Place = str | StoreSettings
"""Where rows are: the path of a file, or a server."""

_READ_BUSY_TIMEOUT = 5.0
_DAYS_SINCE = 6  # the first schema with days
_DIFFS_SINCE = 12  # the first schema with diffs
_RULES_SINCE = 15  # the first schema with rules
_OUTBOX_SINCE = 17  # the first schema with notifications
_RUNS_SINCE = 1  # the first schema whose runs read_runs can read


class _Fingerprint(Struct, frozen=True, kw_only=True):
    """Differs where a writer has come or gone meanwhile; ``journal``: one is there, or was."""

    journal: bool
    inode: int
    size: int
    changed: int


def read_history(
    database: Place,
    *,
    issue: str | None = None,
    limit: int = 100,
    before: RunId | None = None,
    rule: str | None = None,
) -> Sequence[HistoryRow]:
    """Return what ``Store.history`` returns, from a file that another process may be writing; of
    one rule, "" for the top level, where that is given.

    Blocks. Creates no file and migrates nothing: a file of an earlier version is read as it is.
    Raises StoreError, UnknownRun among them.
    """
    page = partial(read_runs, issue=issue, limit=limit, before=before, rule=rule)
    return _beside(database, page, _RUNS_SINCE if rule is None else _RULES_SINCE)


def read_one(database: Place, run_id: RunId) -> HistoryRow | None:
    """Return one run, None where it is not recorded, as ``read_history`` reads."""
    return _beside(database, partial(read_run, run_id=run_id), _RUNS_SINCE)


def read_diff_of(database: Place, run_id: RunId) -> str | None:
    """Return what a run's work changed, as ``read_history`` reads; None where it is not recorded.
    A file of a version that kept none is refused."""
    return _beside(database, partial(read_diff, run_id=run_id), _DIFFS_SINCE)


def read_newest(database: Place, issue: str) -> HistoryRow | None:
    """Return the newest run of an issue, named by its identifier or its id; None without any."""
    return _beside(database, partial(read_newest_run, issue=issue), _RUNS_SINCE)


def read_daily(database: Place, *, limit: int) -> Sequence[DayRow]:
    """Return what each agent did and used on the last ``limit`` days, as ``read_history`` reads.

    Raises StoreError; a file of a version that kept no days is refused.
    """
    return _beside(database, partial(read_days, limit=limit), _DAYS_SINCE)


def read_by_rule(database: Place, since: float) -> Sequence[RuleRow]:
    """Return what the runs of each rule used that have ended since a moment in Unix seconds, as
    ``read_history`` reads. Raises StoreError; a file of a version without rules is refused."""
    return _beside(database, partial(read_rules, since=since), _RULES_SINCE)


def read_notifications(
    database: Place, state: str | None, limit: int
) -> Sequence[ListedNotification]:
    """Return the notifications that wait or are dead, as ``read_history`` reads; one of both where
    ``state`` says so. Raises StoreError; a file of a version without them is refused."""
    return _beside(database, partial(read_listed, state=state, limit=limit), _OUTBOX_SINCE)


def read_state(database: Place) -> Recovered:
    """Return what a start would recover, as ``read_history`` reads; raises StoreError.

    A file of an earlier version is refused.
    """
    return _beside(database, read_recovered, len(migrations()))


def is_there(database: Place) -> bool:
    """Tell whether a file is there; what a server has it tells itself."""
    return not isinstance(database, str) or os.path.lexists(database)


def can_be_read(database: Place) -> bool:
    """Tell whether a regular file is there; what a server has it tells itself."""
    return not isinstance(database, str) or os.path.isfile(database)


def _beside(database: Place, job: Callable[[Database], T], since: int) -> T:
    """Do a job with the database of another process, or of none, as it stands."""
    if not isinstance(database, str):
        return _on_server(database, job)
    path = database
    place = os.path.realpath(place_of(path))
    read = partial(_read, place, job, since)
    found = _fingerprint(place)
    if found.journal:
        return read("mode=ro")
    # Without a -wal file no process has the database open. SQLite would then leave a -wal file of
    # this user behind, unless it is opened as immutable. That it was is verified afterwards.
    try:
        answer = read("immutable=1")
    except StoreError:
        if _fingerprint(place) == found:
            raise
    else:
        if _fingerprint(place) == found:
            return answer
    return read("mode=ro")


def _on_server(store: StoreSettings, job: Callable[[Database], T]) -> T:
    postgres = postgres_module()
    return cast("T", postgres.read_beside(postgres.address_of(store), job))


def _read(path: str, job: Callable[[Database], T], since: int, access: str) -> T:
    uri = f"file:{quote(os.fsencode(path))}?{access}"
    with (
        explained("read", path),
        closing(
            sqlite3.connect(uri, uri=True, timeout=_READ_BUSY_TIMEOUT, isolation_level=None)
        ) as connection,
    ):
        database = SqliteDatabase(connection, path)
        require_schema(database, migrations(), since)
        return job(database)


def _fingerprint(path: str) -> _Fingerprint:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError(
            f"there is no database {path}: no daemon has run here yet, or db_path names another"
        ) from error
    except OSError as error:
        raise StoreError(f"cannot read the database {path}: {error.strerror}") from error
    return _Fingerprint(
        journal=os.path.exists(path + "-wal"),
        inode=found.st_ino,
        size=found.st_size,
        changed=found.st_mtime_ns,
    )
