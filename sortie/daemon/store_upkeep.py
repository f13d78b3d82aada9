"""What is done to a store while no daemon works with it: copy its rows, forget an issue."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import cast

from msgspec import Struct

from sortie.config.settings import Settings
from sortie.daemon.database_life import refuse_lost_rows
from sortie.daemon.dry_run import load_quietly
from sortie.daemon.locks import HeldElsewhere, Lock, database_lock
from sortie.daemon.options import RunOptions
from sortie.model import SortieError
from sortie.store.copying import copy_rows
from sortie.store.database import Database
from sortie.store.database_file import open_database
from sortie.store.opening import postgres_module
from sortie.store.purging import PurgedIssue, purge_issue
from sortie.store.readonly import can_be_read
from sortie.store.sqlite import BUSY_TIMEOUT
from sortie.telemetry.transcripts.files import directory_of, name_of


class CopiedStore(Struct, frozen=True, kw_only=True):
    """From where to where rows were copied, and how many of each table."""

    source: str
    target: str
    rows: Mapping[str, int]


def copy_store(options: RunOptions, *, to_server: bool) -> CopiedStore:
    """Copy the rows of ``db_path`` to the server of ``store.url``, or back.

    Raises SortieError, also while a daemon works with one of them.
    """
    settings = load_quietly(options).settings
    if settings.store.url is None:
        raise SortieError("store.url is not set; name the server in it, for this command at least")
    if to_server and not os.path.lexists(settings.db_path):
        raise SortieError(f"there is no database {settings.db_path} to be copied")
    with ExitStack() as opened:
        lock = opened.enter_context(_without_daemon(settings))
        if to_server:
            refuse_lost_rows(lock, settings.db_path)
        file = opened.enter_context(closing(open_database(settings.db_path, BUSY_TIMEOUT)))
        server = opened.enter_context(closing(_on_server(settings)))
        source, target = (file, server) if to_server else (server, file)
        with source.explained("read"), target.explained("write to"):
            rows = copy_rows(source, target)
        return CopiedStore(source=source.name, target=target.name, rows=rows)


def purge(options: RunOptions, issue: str) -> PurgedIssue:
    """Forget all that is recorded of an issue, and what its runs have said.

    Raises SortieError, also while a daemon works with the database.
    """
    settings = load_quietly(options).settings
    if not can_be_read(settings.database):
        raise SortieError(f"there is no database {settings.db_path}: no daemon has run here")
    with (
        _without_daemon(settings),
        closing(_opened(settings)) as database,
        database.explained("write to"),
    ):
        purged = purge_issue(database, issue)
    for run_id in purged.runs:
        with suppress(OSError):  # most often there is none any more
            os.unlink(os.path.join(directory_of(settings.db_path), name_of(run_id)))
    return purged


def _opened(settings: Settings) -> Database:
    if settings.store.url is None:
        return open_database(settings.db_path, BUSY_TIMEOUT)
    return _on_server(settings)


@contextmanager
def _without_daemon(settings: Settings) -> Iterator[Lock]:
    """Keep daemons of a workflow away. Raises SortieError where one works already."""
    with database_lock(settings.db_path) as lock:
        try:
            lock.ensure()
        except HeldElsewhere as error:
            raise SortieError(f"stop the daemon first: {error}") from error
        except OSError as error:
            raise SortieError(
                f"cannot lock the database {settings.db_path}: {error.strerror}"
            ) from error
        yield lock


def _on_server(settings: Settings) -> Database:
    """Open the rows on a server, which takes the lock that daemons need."""
    postgres = postgres_module()
    return cast(Database, postgres.open_postgres(postgres.address_of(settings.store)))
