"""The store in a SQLite file: WAL, synchronous=FULL, and one thread that owns the connection.

Rule 1: only this thread touches the connection; jobs are done one by one, in the order of asking.
Rule 2: a change that was handed over is made, even if the task that asked was cancelled.
Rule 3: the thread lives as long as the database is open. A thread from a pool would have to be
started for most commits, and where the machine has no more threads the loop would stand still.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

import trio

from sortie.model import ProcessIdentity, RunId, Sighting, Spending, StoreError
from sortie.scheduler.records import Record
from sortie.store import DayRow, HistoryRow, RecordRefused, Recovered, Totals
from sortie.store.database import (
    Database,
    DatabaseIdentity,
    begin_life,
    explained,
    file_identity,
    forget_path_name,
    read_identity,
)
from sortie.store.database_file import open_database, prove_writable, try_to_write
from sortie.store.filesystems import is_doubtful
from sortie.store.record_reader import (
    read_day,
    read_days,
    read_diff,
    read_recovered,
    read_run,
    read_runs,
    read_totals,
)
from sortie.store.record_writer import write
from sortie.store.rows import sighting

T = TypeVar("T")


class DatabaseThread:
    """Does jobs with a database; made by ``open_thread``."""

    def __init__(self, database: Database, pool: ThreadPoolExecutor) -> None:
        self._database = database
        self._pool = pool
        self._open = True

    async def change(self, job: Callable[[Database], T]) -> T:
        """Do a job that writes. Cancellation has an effect before the job is handed over only."""
        await trio.lowlevel.checkpoint_if_cancelled()
        return await _answer(self._pool, self._work("write to", job))

    async def read(self, job: Callable[[Database], T]) -> T:
        """Do a job that only reads; cancelled, it may never be done."""
        await trio.lowlevel.checkpoint_if_cancelled()
        return await _answer(self._pool, self._work("read", job), abandon_on_cancel=True)

    async def close(self) -> None:
        """Do what was asked for until now, then close the database. Cancellation waits."""
        work = self._work("close", Database.close)
        self._open = False
        await _answer(self._pool, work)

    def _work(self, attempt: str, job: Callable[[Database], T]) -> Callable[[], T]:
        database = self._database
        if not self._open:
            raise StoreError(f"cannot {attempt} the database {database.path}: it is closed")

        def work() -> T:
            with explained(attempt, database.path):
                return job(database)

        return work


@asynccontextmanager
async def open_thread(opening: Callable[[], Database]) -> AsyncIterator[DatabaseThread]:
    """Start the thread, open the database in it, and close both at the end.

    Leaving waits for changes under way: no longer than the database's busy timeout and the disk
    take, because nothing here waits for anything else.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="sortie-store") as pool:
        thread = DatabaseThread(await _answer(pool, opening), pool)
        try:
            yield thread
        finally:
            await thread.close()


async def _answer(
    pool: ThreadPoolExecutor, work: Callable[[], T], *, abandon_on_cancel: bool = False
) -> T:
    """Have the thread do some work; where it is abandoned, it may never be done."""
    answered = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def announce(_: Future[T]) -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(answered.set)

    try:
        future = pool.submit(work)
    except RuntimeError as error:
        raise StoreError(f"the database's thread cannot work: {error}") from error
    future.add_done_callback(announce)
    try:
        with trio.CancelScope(shield=not abandon_on_cancel):
            await answered.wait()
    finally:
        future.cancel()
    return future.result()


BUSY_TIMEOUT = 5.0
"""Seconds to wait for another process, such as a backup, that locks the database."""


@asynccontextmanager
async def open_store(
    path: str, *, busy_timeout: float = BUSY_TIMEOUT
) -> AsyncIterator[SqliteStore]:
    """Open the database at ``path``, made with mode 0600 or migrated where needed.

    Raises StoreError for a place or file that cannot serve, a network file system, and a database
    of a newer version. Shutdown waits until all that was handed over is written.
    """
    async with open_thread(partial(open_database, path, busy_timeout)) as thread:
        yield SqliteStore(thread)


class SqliteStore:
    """A Store on a database that a thread of its own holds.

    Changes are numbered in the order in which they are made. While ``_failed`` is beyond
    ``_succeeded``, the last try to write failed: only a commit proves that the next will not.
    """

    def __init__(self, thread: DatabaseThread) -> None:
        self._thread = thread
        self._inherited = 0  # the last seq of an earlier daemon
        self._asked = self._failed = self._succeeded = 0

    async def identity(self) -> DatabaseIdentity:
        """Return what the database is, as its last daemon has left it."""
        return await self._thread.read(read_identity)

    async def begin_life(self, process: ProcessIdentity, database_id: str) -> DatabaseIdentity:
        """Note that this process is its daemon from now on, under an id; return what it is now."""
        await self._change(partial(begin_life, process=process, database_id=database_id))
        return await self.identity()

    async def forget_path_name(self) -> None:
        """Note that nothing is left that is named by the path of the database."""
        await self._change(forget_path_name)

    async def commit(self, records: Sequence[Record], at: float) -> None:
        """Write all records, or none; once handed over, also if the caller is cancelled."""
        job = partial(write, records=tuple(records), at=at, inherited=self._inherited)
        if records:
            await self._change(job)

    async def recover(self) -> Recovered:
        """Read what an earlier daemon left; what it had under way ended when last heard of."""
        self._inherited, recovered = await self._thread.read(_inherit)
        return recovered

    async def history(
        self,
        *,
        issue: str | None = None,
        limit: int = 100,
        before: RunId | None = None,
        rule: str | None = None,
    ) -> Sequence[HistoryRow]:
        """Return runs, newest first. Raises UnknownRun."""
        page = partial(read_runs, issue=issue, limit=limit, before=before, rule=rule)
        return await self._thread.read(page)

    async def run(self, run_id: RunId) -> HistoryRow | None:
        """Return one run, None where it is not recorded."""
        return await self._thread.read(partial(read_run, run_id=run_id))

    async def diff(self, run_id: RunId) -> str | None:
        """Return what a run's work changed, None where it is not recorded."""
        return await self._thread.read(partial(read_diff, run_id=run_id))

    async def forget_runs(self, before: float, limit: int) -> int:
        """Delete old runs that nothing refers to any more; return how many."""
        return await self._change(partial(_forget_runs, before=before, limit=limit))

    async def totals(self) -> Totals:
        """Return the sums, which are kept up to date by each commit."""
        return await self._thread.read(read_totals)

    async def spent_on(self, day: str) -> Spending:
        """Return what was used on a day."""
        return await self._thread.read(partial(read_day, day=day))

    async def days(self, limit: int) -> Sequence[DayRow]:
        """Return what each agent did and used on the last days."""
        return await self._thread.read(partial(read_days, limit=limit))

    async def sight(self, digests: Mapping[str, str], at: float) -> Mapping[str, Sighting]:
        """Note digests; nothing is written where none changed."""
        return await self._change(partial(_sight, digests=dict(digests), at=at))

    async def check(self) -> None:
        """See that the file is still the one at its path, and can be written.

        A row is committed only where there is a doubt: after a failure, and where the disk is
        nearly full or read-only. A daemon that has nothing to do leaves the disk alone.
        """
        await self._change(partial(_check, doubted=self._failed > self._succeeded))

    async def _change(self, job: Callable[[Database], T]) -> T:
        self._asked += 1
        number = self._asked
        try:
            answer = await self._thread.change(job)
        except RecordRefused:
            raise  # it says nothing about the disk
        except StoreError:
            self._failed = max(self._failed, number)
            raise
        # The answers may be heard in another order than the changes were made in.
        self._succeeded = max(self._succeeded, number)
        return answer


def _inherit(database: Database) -> tuple[int, Recovered]:
    return int(database.row("newest_seq")["seq"]), read_recovered(database)


def _sight(database: Database, digests: Mapping[str, str], at: float) -> Mapping[str, Sighting]:
    seen = {}
    with database.forgettable_transaction():
        for issue_id, digest in digests.items():
            database.change("note_sighting", issue_id=issue_id, digest=digest, at=at)
            seen[issue_id] = sighting(database.row("sighting", issue_id=issue_id))
    return seen


def _forget_runs(database: Database, before: float, limit: int) -> int:
    with database.transaction():
        return database.change("forget_runs", before=before, limit=limit)


def _check(database: Database, *, doubted: bool) -> None:
    if file_identity(database.path) != database.identity:
        raise StoreError(
            f"the database {database.path} was replaced while in use, and what is recorded now "
            "will be lost; restart the daemon"
        )
    if doubted or is_doubtful(database.path):
        prove_writable(database)
    else:
        try_to_write(database)
