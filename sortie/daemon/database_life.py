"""The beginning of a daemon's life with a database.

Rule 1: what a daemon starts is named by the id in its database. Two files have two ids, also where
one was copied from the other or both have the same path in different mount namespaces.
Rule 2: what a process of several workflows starts is named by an id of that process, which is
noted beside the lock of each of their databases. The next daemon of any of them ends what is left.
Rule 3: a database whose newest rows were thrown away with its -wal is refused.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from msgspec import Struct

from sortie.config.settings import Settings
from sortie.daemon.endpoint_file import is_running
from sortie.daemon.locks import Lock, database_lock, database_lock_path
from sortie.daemon.root_lock import RootLock
from sortie.facts import OrphansReaped
from sortie.model import ProcessIdentity, SortieError, StoreError, TransportError
from sortie.resources.lease import current_lease
from sortie.resources.process_identity import identity_of
from sortie.store.database_store import DatabaseStore
from sortie.store.identity import DatabaseIdentity
from sortie.store.opening import store_of
from sortie.telemetry.log.sink import LogSink
from sortie.transports.local import LocalTransport, RunGroups, mark_of_database


async def begin_life(store: DatabaseStore, lock: Lock, db_path: str | None) -> DatabaseIdentity:
    """Become the daemon of a database; return its identity. ``db_path`` is its file, if it is one.

    Raises StoreError for a copy whose original is in use.
    """
    found = await store.identity()
    if found.is_copy and found.daemon is not None and _is_other(found.daemon):
        raise StoreError(
            f"the database {store.name} is a copy of one that a daemon works with, pid"
            f" {found.daemon.pid}: both would work on the same issues; stop that daemon, or begin"
            " with a database of its own"
        )
    database_id = uuid.uuid4().hex if found.is_copy else found.id
    before = None if db_path is None else _state(db_path)
    begun = await store.begin_life(identity_of(os.getpid()), database_id)
    # Where the file has not changed, that commit stands in the -wal and nowhere else.
    is_unmoved = db_path is not None and before is not None and before == _state(db_path)
    with suppress(OSError):  # the note only helps the next start
        lock.note({"unmoved": before} if is_unmoved else {})
    return begun


class OpenDatabase(Struct, frozen=True, kw_only=True):
    """A database that is locked and open, with the lock of the workspace root, which is not locked
    yet. ``id`` is the database's own."""

    store: DatabaseStore
    lock: Lock
    root_lock: RootLock
    id: str

    def note_process(self, name: str) -> None:
        """Note by which name this process marks what it starts. It only helps the next start."""
        me = identity_of(os.getpid())
        noted = self.lock.remark if isinstance(self.lock.remark, dict) else {}
        with suppress(OSError):
            self.lock.note(
                {**noted, "process": {"name": name, "pid": me.pid, "started_at": me.started_at}}
            )


@asynccontextmanager
async def open_database(
    settings: Settings, end_former: Callable[[int], Awaitable[bool]]
) -> AsyncIterator[OpenDatabase]:
    """Lock and open a database, and become its daemon, which leads the workflow if that has leases;
    ``end_former`` ends what a mark names, and tells whether none is left. Raises SortieError where
    that is not possible."""
    with database_lock(settings.db_path) as lock, RootLock(settings.workspace.root) as root_lock:
        try:
            lock.ensure()
        except OSError as exc:
            raise SortieError(
                f"cannot lock the database {settings.db_path}: {exc.strerror}; make its directory"
                " writable, or set db_path"
            ) from exc
        is_file = settings.store.url is None
        if is_file:
            refuse_lost_rows(lock, settings.db_path)
        former = _former_process(lock)
        async with store_of(settings, current_lease()) as store:
            lock.ensure()  # a new database is only now there to be locked itself
            life = await begin_life(store, lock, settings.db_path if is_file else None)
            # In another mount namespace the same path may be another database's: only once.
            path = os.path.realpath(settings.db_path)
            if life.path_named and await end_former(mark_of_database(path)):
                await store.forget_path_name()
            if former is not None:
                await end_former(mark_of_database(former))
            yield OpenDatabase(store=store, lock=lock, root_lock=root_lock, id=life.id)


def _former_process(lock: Lock) -> str | None:
    """Return the name of a process of several workflows that had the database, if it is gone."""
    noted: Any = lock.remark.get("process") if isinstance(lock.remark, dict) else None
    try:
        identity = ProcessIdentity(pid=int(noted["pid"]), started_at=float(noted["started_at"]))
        return None if is_running(identity) else str(noted["name"])
    except (TypeError, ValueError, KeyError):
        return None


async def ended_by_mark(mark: int, settings: Settings, environ: Mapping[str, str]) -> bool:
    """End the processes that carry a mark or are in its cgroup; return whether none is left.

    Only for a process that has started none of its own yet.
    """
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
