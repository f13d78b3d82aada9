"""The beginning of a daemon's life with a database.

Rule 1: what a daemon starts is named by the id in its database. Two files have two ids, also where
one was copied from the other or both have the same path in different mount namespaces.
Rule 2: a database whose newest rows were thrown away with its -wal is refused.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from contextlib import suppress

from sortie.config.settings import Settings
from sortie.daemon.endpoint_file import is_running
from sortie.daemon.locks import Lock, database_lock_path
from sortie.facts import OrphansReaped
from sortie.model import ProcessIdentity, StoreError, TransportError
from sortie.resources.process_identity import identity_of
from sortie.store.database import DatabaseIdentity
from sortie.store.sqlite import SqliteStore
from sortie.telemetry.log.sink import LogSink
from sortie.transports.local import LocalTransport, RunGroups, mark_of_database


async def begin_life(store: SqliteStore, lock: Lock, db_path: str) -> DatabaseIdentity:
    """Become the daemon of a database; return its identity.

    Raises StoreError for a copy whose original is in use.
    """
    found = await store.identity()
    if found.is_copy and found.daemon is not None and _is_other(found.daemon):
        raise StoreError(
            f"the database {db_path} is a copy of one that a daemon works with, pid"
            f" {found.daemon.pid}: both would work on the same issues; stop that daemon, or begin"
            " with a database of its own"
        )
    database_id = uuid.uuid4().hex if found.is_copy else found.id
    before = _state(db_path)
    begun = await store.begin_life(identity_of(os.getpid()), database_id)
    # Where the file has not changed, that commit stands in the -wal and nowhere else.
    is_unmoved = before is not None and before == _state(db_path)
    with suppress(OSError):  # the note only helps the next start
        lock.note({"unmoved": before} if is_unmoved else {})
    return begun


async def ended_by_path(settings: Settings, environ: Mapping[str, str]) -> bool:
    """End the processes that an earlier version named by the path of the database, by its mark and
    cgroup; return whether none is left.

    Done once, by the first daemon that names by the id: in another mount namespace the same path
    may be another database's.
    """
    mark = mark_of_database(os.path.realpath(settings.db_path))
    groups = RunGroups.open(f"sortie-{mark:x}")
    transport = LocalTransport(environ.get("PATH", ""), mark=mark, groups=groups)
    try:
        count = await transport.sweep((), grace=settings.agent.stop_grace)
    except TransportError:
        return False  # recovery reports those that stay; the next start tries again
    finally:
        await transport.close()
    if count:
        LogSink()(OrphansReaped(where="local", count=count))
    return True


def refuse_lost_rows(lock: Lock, db_path: str) -> None:
    """Raise StoreError where the -wal of a database is gone and had rows that are nowhere else.

    That is so where the file has not changed since its last daemon began with it: SQLite removes a
    -wal only after it has moved all rows into the file. Nothing is changed here, so that each start
    is refused.
    """
    noted = lock.remark.get("unmoved") if isinstance(lock.remark, dict) else None
    if noted is None or noted != _state(db_path) or _has_rows(f"{os.path.realpath(db_path)}-wal"):
        return
    raise StoreError(
        f"the database {db_path} lacks its newest rows: they were in {db_path}-wal, which was"
        " removed while no daemon had moved them; bring that file back, or put a backup in place"
        " of the database. To go on with the rows that are left, remove"
        f" {database_lock_path(db_path)} and start again"
    )


def _is_other(daemon: ProcessIdentity) -> bool:
    return daemon.pid != os.getpid() and is_running(daemon)


def _state(path: str) -> list[int] | None:
    """Return what differs after each change of a file, None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_dev, found.st_ino, found.st_ctime_ns]


def _has_rows(wal: str) -> bool:
    try:
        return os.stat(wal).st_size > 0
    except OSError:
        return False
