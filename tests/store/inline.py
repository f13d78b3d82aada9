"""The real store on SQLite's memory, without a thread: virtual time stands still while it works."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import trio

from sortie.model import StoreError
from sortie.store.database import Database
from sortie.store.database_store import DatabaseStore
from sortie.store.database_thread import DatabaseThread
from sortie.store.schema_versions import migrate, migrations
from sortie.store.sqlite_database import SqliteDatabase

T = TypeVar("T")


def memory_database() -> SqliteDatabase:
    """Return a database that is gone with its connection.

    It has no file; the device that stands for one is there, has room and is never replaced.
    """
    connection = sqlite3.connect(":memory:", isolation_level=None)
    _migrated_once().backup(connection)
    return SqliteDatabase(connection, os.devnull)


@cache
def _migrated_once() -> sqlite3.Connection:
    """Return an empty database, whose copies need none of a hundred statements."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate(SqliteDatabase(connection, os.devnull), migrations())
    return connection


class InlineThread(DatabaseThread):
    """Does jobs at once, in the task that asks; ``pause`` comes before each."""

    def __init__(self, database: SqliteDatabase, pause: Callable[[], Awaitable[object]]) -> None:
        super().__init__(database, ThreadPoolExecutor(max_workers=1))  # which is never used
        self._pause = pause

    async def change(self, job: Callable[[Database], T]) -> T:
        """Do a job that writes."""
        await self._pause()
        return self._work("write to", job)()

    async def read(self, job: Callable[[Database], T]) -> T:
        """Do a job that only reads."""
        await self._pause()
        return self._work("read", job)()


class MemoryStore(DatabaseStore):
    """A Store that forgets with the process; while ``failing`` is set, each method raises it, and
    while ``silent`` is set, each waits for it first.

    What was committed stays over any number of calls of ``recover``, so a scheduler can be dropped
    and built anew on the same store.
    """

    def __init__(self) -> None:
        self.failing: StoreError | None = None
        self.silent: trio.Event | None = None
        super().__init__(InlineThread(memory_database(), self._may_fail))

    async def _may_fail(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.silent is not None:
            with trio.CancelScope(shield=True):
                await self.silent.wait()
        if self.failing is not None:
            raise self.failing
