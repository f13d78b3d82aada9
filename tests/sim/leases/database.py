"""The rows of one workflow in the common database, as a leader reaches them.

Rule 1: each writing transaction requires the leader's token, and holds the lease's row until its
end; an acquisition ends it.
Rule 2: a commit whose answer was lost was made or not; the next one tells, as the product's mark of
a transaction does. It has not been made once a later one has begun.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from random import Random
from typing import TypeVar

import trio

from sortie.model import StoreError
from sortie.resources.lease import Lease
from sortie.scheduler.records import Record
from sortie.store import Recovered
from sortie.store.database import Database
from sortie.store.database_file import open_database
from sortie.store.database_store import DatabaseStore
from sortie.store.doubted_commits import DoubtedCommits
from sortie.store.record_writer import write
from sortie.store.sqlite_database import SqliteDatabase
from tests.sim.disk import Disk
from tests.sim.leases.freezing import FreezablePlug
from tests.sim.leases.lease_server import LeaseServer, OpenTransaction
from tests.sim.leases.wire import NoAnswerError, Wire
from tests.sim.system.account import Ledger
from tests.sim.system.trace import Trace
from tests.store.inline import InlineThread

ANSWER_LIMIT = 15.0
"""Seconds after which a leader gives up waiting for the database."""

T = TypeVar("T")


class Rows:
    """The rows of a workflow after so many ``commits``; ``slow`` are the seconds that a transaction
    takes at most."""

    def __init__(self, workflow: str, path: str, server: LeaseServer, trace: Trace) -> None:
        self.workflow = workflow
        self.path = path
        self.server = server
        self.trace = trace
        open_database(path, 1.0).close()
        own = sqlite3.connect(path, isolation_level=None)
        self.disk = Disk(SqliteDatabase(own, path))
        self.commits = 0
        self.slow = 0.0

    def changed(self) -> None:
        """Count a commit."""
        self.commits += 1
        self.disk.changed()

    @property
    def left(self) -> Recovered:
        """What the last commit left."""
        return self.disk.recover()


class _FencedDatabase(SqliteDatabase):
    """A database that writes nothing for a token that is not the newest."""

    def __init__(self, connection: sqlite3.Connection, rows: Rows, token: int) -> None:
        super().__init__(connection, rows.path)
        self.rows_of = rows
        self.token = token

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything inside, or nothing."""
        with super().transaction():
            self.require_token()
            yield
        self._judge()

    @contextmanager
    def forgettable_transaction(self) -> Iterator[None]:
        """Write everything inside, or nothing."""
        with super().forgettable_transaction():
            self.require_token()
            yield
        self._judge()

    def require_token(self) -> None:
        """Raise LeaseLost for a token that is not the newest."""
        self.rows_of.server.require_token(self.rows_of.workflow, self.token)

    def _judge(self) -> None:
        rows = self.rows_of
        if rows.server.leases[rows.workflow].token != self.token:
            rows.trace.wrong(f"{rows.workflow} was written with the older token {self.token}")


class _WiredThread(InlineThread):
    """Does jobs at the other end of a network, one by one."""

    def __init__(
        self, database: _FencedDatabase, wire: Wire, plug: FreezablePlug, draw: Random
    ) -> None:
        super().__init__(database, trio.lowlevel.checkpoint)
        self._rows = database.rows_of
        self._token = database.token
        self._wire = wire
        self._plug = plug
        self._draw = draw
        self._turn = trio.Lock()

    async def change(self, job: Callable[[Database], T]) -> T:
        """Do a job that writes; once handed over it is done, also if the caller is cancelled."""
        await trio.lowlevel.checkpoint_if_cancelled()
        answers = list[T]()
        with trio.CancelScope(shield=True):
            work = partial(self._in_transaction, self._work("write to", job))
            answers.append(await self._ask(work))
        return answers[0]

    async def read(self, job: Callable[[Database], T]) -> T:
        """Do a job that only reads."""
        work = self._work("read", job)

        async def read() -> T:
            return work()

        return await self._ask(read)

    async def _ask(self, request: Callable[[], Awaitable[T]]) -> T:
        async with self._turn:
            try:
                return await self._plug.through(lambda: self._wire.ask(request, ANSWER_LIMIT))
            except NoAnswerError as error:
                raise StoreError(f"cannot reach the database: {error}") from error

    async def _in_transaction(self, work: Callable[[], T]) -> T:
        """Do a job between the beginning of a transaction and its end, which may take long: the
        client may be frozen meanwhile."""
        rows, transaction = self._rows, OpenTransaction(self._token)
        if not rows.slow and not self._plug.is_frozen:
            return work()
        rows.server.transactions.setdefault(rows.workflow, []).append(transaction)
        try:
            await trio.sleep(self._draw.uniform(0, rows.slow))
            await self._plug.awake()
            if transaction.terminated:
                raise StoreError("the session was terminated")
            return work()
        finally:
            rows.server.end(rows.workflow, transaction)


class LeasedStore(DatabaseStore):
    """The store of one leader. ``asked`` returns the account as it stands when records are given to
    the store, and ``committed`` is told of it and of them at the moment of their commit;
    ``recovered`` is told that what an earlier leader left has been read."""

    def __init__(
        self, rows: Rows, lease: Lease, wire: Wire, plug: FreezablePlug, draw: Random
    ) -> None:
        self._connection = sqlite3.connect(rows.path, isolation_level=None)
        database = _FencedDatabase(self._connection, rows, lease.token)
        super().__init__(_WiredThread(database, wire, plug, draw))
        self._rows, self._token = rows, lease.token
        self.workflow, self.holder = rows.workflow, lease.holder
        self._doubted = DoubtedCommits()
        self._tries = count()
        self._newest_try = -1
        self._made = set[int]()
        self.asked: Callable[[], Ledger | None] = lambda: None
        self.committed: Callable[[Sequence[Record], float, Ledger | None], object] = (
            lambda _records, _at, _asked: None
        )
        self.recovered: Callable[[], object] = lambda: None
        self.read_at = -1
        self.own_commits = 0

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    async def recover(self) -> Recovered:
        """Read what an earlier leader left."""
        recovered = await super().recover()
        self.read_at, self.own_commits = self._rows.commits, 0
        # Another leader may have written since, where this machine has slept before it heard that.
        is_newest = self._rows.server.leases[self.workflow].token == self._token
        if is_newest and recovered != self._rows.left:
            self._rows.trace.wrong(f"the database holds {recovered}, not what was committed")
        self.recovered()
        return recovered

    async def commit(self, records: Sequence[Record], at: float) -> None:
        """Write all records or none, but for those that an earlier try has written."""
        if not records:
            return
        mark, written, asked = next(self._tries), tuple(records), self.asked()
        try:
            await self._change(partial(self._write, mark=mark, asked=asked, records=written, at=at))
        except StoreError as error:
            has_begun = self._newest_try >= mark
            if has_begun or not self._doubted.is_in_doubt:
                no_answer = isinstance(error.__cause__, NoAnswerError)
                self._doubted.failed(written, mark if no_answer else None)
            else:
                # The product asks first what became of the commit before: it sends no further one.
                self._newest_try = mark
            raise
        self._doubted.succeeded(written)

    def _write(
        self,
        database: Database,
        mark: int,
        asked: Ledger | None,
        records: tuple[Record, ...],
        at: float,
    ) -> None:
        if mark <= self._newest_try:
            raise StoreError("the session of that commit has ended")  # a later one has begun
        self._newest_try = mark
        self._doubted.settle(self._made.__contains__)
        if rest := self._doubted.unmade(records):
            write(database, rest, at, self._inherited)
            self.own_commits += 1
            for record in rest:
                self._rows.trace.tell("record", record)
            self._rows.changed()
            self.committed(rest, at, asked)
        self._made.add(mark)
