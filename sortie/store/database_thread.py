"""One thread that owns the connection to a database.

Rule 1: only this thread touches the connection; jobs are done one by one, in the order of asking.
Rule 2: a change that was handed over is made, even if the task that asked was cancelled.
Rule 3: the thread lives as long as the database is open. A thread from a pool would have to be
started for most commits, and where the machine has no more threads the loop would stand still.
Rule 4: a job for which a server takes too long is given up by whatever task waits for the thread,
also if the task that asked for that job has gone.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import trio

from sortie.model import StoreError
from sortie.store.database import Database, ServerDatabase

T = TypeVar("T")

_PAUSE = 0.1  # seconds between two attempts to give a job up: there may be no connection yet
_LONGEST_PAUSE = 0.5  # seconds from the end of a lease to that of the job under way


class DatabaseThread:
    """Does jobs with a database; made by ``open_thread``."""

    def __init__(self, database: Database, pool: ThreadPoolExecutor) -> None:
        self._database = database
        self._pool = pool
        self._open = True
        self._begun_at: float | None = None  # the job under way, in seconds of time.monotonic

    @property
    def name(self) -> str:
        """What messages call the database."""
        return self._database.name

    async def change(self, job: Callable[[Database], T]) -> T:
        """Do a job that writes. Cancellation has an effect before the job is handed over only."""
        await trio.lowlevel.checkpoint_if_cancelled()
        return await _answer(self._pool, self._work("write to", job), self._look)

    async def read(self, job: Callable[[Database], T]) -> T:
        """Do a job that only reads; cancelled, it may never be done."""
        await trio.lowlevel.checkpoint_if_cancelled()
        work = self._work("read", job)
        return await _answer(self._pool, work, self._look, abandon_on_cancel=True)

    async def close(self) -> None:
        """Do what was asked for until now, then close the database. Cancellation waits."""
        self._open = False
        await _answer(self._pool, self._close, self._look)

    def _close(self) -> None:
        with self._database.explained("close"):
            self._database.close()

    def _work(self, attempt: str, job: Callable[[Database], T]) -> Callable[[], T]:
        database = self._database
        if not self._open:
            raise StoreError(f"cannot {attempt} the database {database.name}: it is closed")
        asked_at = time.monotonic()

        def work() -> T:
            self._begun_at = time.monotonic()
            try:
                with database.explained(attempt):
                    return database.perform(job, asked_at)
            finally:
                self._begun_at = None

        return work

    def _look(self) -> float:
        """Give the job under way up where its time is over; return the seconds to the next look."""
        database, begun_at = self._database, self._begun_at
        if not isinstance(database, ServerDatabase):
            return math.inf
        left = database.ANSWER_LIMIT
        if begun_at is not None:
            left += begun_at - time.monotonic()
            if left <= 0 or not database.may_be_used:
                database.give_up()
        return min(max(left, _PAUSE), _LONGEST_PAUSE)


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
    pool: ThreadPoolExecutor,
    work: Callable[[], T],
    look: Callable[[], float] = lambda: math.inf,
    *,
    abandon_on_cancel: bool = False,
) -> T:
    """Have the thread do some work; where it is abandoned, it may never be done.

    ``look`` is called while there is no answer, each time after as many seconds as it returned.
    """
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
            while not answered.is_set():
                with trio.move_on_after(look()):
                    await answered.wait()
    finally:
        future.cancel()
    return future.result()
