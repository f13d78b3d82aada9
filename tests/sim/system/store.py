"""The real SQLite store in a file that outlives the daemon's lives, but no thread and no luck.

``Drive`` tells ``committed`` and ``recovered`` what happens to it.

Rule 1: what is on record is looked at through a connection of our own, ``disk``, as any process
may; every new life finds what the last commit had left, and nothing of one that failed.
Rule 2: each commit is numbered over all lives; the daemon can be killed right before or right
after any of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Literal

import trio

from sortie.scheduler.records import Record
from sortie.store import Recovered
from sortie.store.database_file import open_database
from sortie.store.database_store import DatabaseStore
from sortie.store.sqlite_database import SqliteDatabase
from tests.sim.disk import Disk
from tests.sim.system.plug import Plug
from tests.sim.system.trace import Trace
from tests.store.inline import InlineThread


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """Kill the daemon right before or right after its commit ``number``, counted from 1."""

    moment: Literal["before", "after"]
    number: int

    def __str__(self) -> str:
        return f"{self.moment}:{self.number}"


class Drive:
    """The disk under the database. Switches: ``full``, ``failing`` at the end of a transaction,
    ``slow`` (seconds that a commit takes at most)."""

    def __init__(self, path: str, draw: Random, trace: Trace) -> None:
        self.path = path
        open_database(path, 1.0).close()
        own = sqlite3.connect(path, isolation_level=None)
        self.disk = Disk(SqliteDatabase(own, path))
        self.left = self.disk.recover()
        self.full = False
        self.failing = False
        self.slow = 0.0
        self.commits = 0
        self.busy = False
        self._well_since = 0.0
        self.crash: CrashPoint | None = None
        self.committed: Callable[[Sequence[Record], float], object] = lambda _records, _at: None
        self.recovered: Callable[[], object] = lambda: None
        self.draw = draw
        self.trace = trace

    def was_well(self, since: float) -> bool:
        """Tell whether commits have worked, and at once, from a time on until now."""
        ill = self.full or self.failing or self.slow > 0 or self.busy
        return not ill and self._well_since <= since

    def heal(self) -> None:
        """Work well from now on."""
        if self.full or self.failing or self.slow:
            self._well_since = trio.current_time()
        self.full = self.failing = False
        self.slow = 0.0

    def dawdled(self) -> None:
        """Be done with a slow commit."""
        self.busy = False
        self._well_since = trio.current_time()

    @contextmanager
    def store(self, plug: Plug) -> Iterator[SimStore]:
        """Open the database for a life."""
        database = open_database(self.path, 1.0)
        try:
            yield SimStore(self, _Failing(database._connection, self), plug)
        finally:
            database.close()


class _Failing(SqliteDatabase):
    """A database whose transactions fail when the drive does."""

    def __init__(self, connection: sqlite3.Connection, drive: Drive) -> None:
        super().__init__(connection, drive.path)
        self._drive = drive

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything inside, or nothing."""
        if self._drive.full:
            raise sqlite3.OperationalError("database or disk is full")
        with super().transaction():
            yield
            if self._drive.failing:
                raise sqlite3.OperationalError("disk I/O error")


class SimStore(DatabaseStore):
    """A store that may take its daemon with it."""

    def __init__(self, drive: Drive, database: SqliteDatabase, plug: Plug) -> None:
        super().__init__(InlineThread(database, lambda: plug.through(trio.lowlevel.checkpoint)))
        self._drive = drive
        self._plug = plug

    async def recover(self) -> Recovered:
        """Read what an earlier life left, and see that it is what was committed."""
        recovered = await super().recover()
        self._drive.recovered()
        if recovered != self._drive.left:
            self._drive.trace.wrong(f"the database holds {recovered}, not what was committed")
        return recovered

    async def commit(self, records: Sequence[Record], at: float) -> None:
        """Write all records or none, and kill the daemon where this is its moment."""
        if not records:
            return
        drive = self._drive
        await self._plug.through(trio.lowlevel.checkpoint)
        if not (drive.full or drive.failing):
            drive.commits += 1
            self._crash("before")
        with trio.CancelScope(shield=True):  # handed over is handed over
            if drive.slow:
                await self._dawdle()
            await super().commit(records, at)
        for record in records:
            drive.trace.tell("record", record)
        drive.disk.changed()
        drive.left = drive.disk.recover()
        drive.committed(records, at)
        self._crash("after")

    async def _dawdle(self) -> None:
        drive = self._drive
        seconds = drive.draw.uniform(0, drive.slow)
        drive.busy = True
        try:
            await self._plug.through(lambda: trio.sleep(seconds))
        finally:
            drive.dawdled()

    def _crash(self, moment: Literal["before", "after"]) -> None:
        if self._drive.crash == CrashPoint(moment, self._drive.commits):
            self._drive.trace.note("world", f"kills the daemon {self._drive.crash}")
            self._plug.pull()
            self._plug.check()
