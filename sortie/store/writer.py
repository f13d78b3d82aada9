"""The one thread that owns the database, and how tasks ask it.

Rule 1: only this thread touches the connection; jobs are done one by one, in the order of asking.
Rule 2: a change that was handed over is made and answered, whatever happens to who asked.
Rule 3: the thread is its own, so no other user of threads can keep a change waiting.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import trio

from sortie.model import StoreError
from sortie.store.database import Database
from sortie.store.faults import explained

T = TypeVar("T")


class Writer:
    """Does jobs with a database in its thread; made by ``open_writer``."""

    def __init__(self, database: Database, thread: ThreadPoolExecutor) -> None:
        self._database = database
        self._thread = thread
        self._open = True

    async def change(self, job: Callable[[Database], T]) -> T:
        """Do a job that writes. Cancellation has an effect before the job is handed over only."""
        await trio.lowlevel.checkpoint_if_cancelled()
        return await _shielded(self._thread, self._work("write to", job))

    async def read(self, job: Callable[[Database], T]) -> T:
        """Do a job that only reads; cancelled, it may never be done."""
        await trio.lowlevel.checkpoint_if_cancelled()
        future, answered = _submit(self._thread, self._work("read", job))
        try:
            await answered.wait()
        finally:
            future.cancel()
        return future.result()

    async def close(self) -> None:
        """Do what was asked for until now, then close the database. Cancellation waits."""
        work = self._work("close", Database.close)
        self._open = False
        await _shielded(self._thread, work)

    def _work(self, attempt: str, job: Callable[[Database], T]) -> Callable[[], T]:
        database = self._database
        if not self._open:
            raise StoreError(f"cannot {attempt} the database {database.path}: it is closed")

        def work() -> T:
            with explained(attempt, database.path):
                return job(database)

        return work


@asynccontextmanager
async def open_writer(opening: Callable[[], Database]) -> AsyncIterator[Writer]:
    """Start the thread, open the database in it, and close both at the end.

    Shutdown waits for changes under way: no longer than the database's busy timeout and the disk
    take, because nothing here waits for anything else.
    """
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sortie-store")
    try:
        writer = Writer(await _shielded(thread, opening), thread)
        try:
            yield writer
        finally:
            await writer.close()
    finally:
        thread.shutdown()  # joins a thread that has nothing left to do


async def _shielded(thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    future, answered = _submit(thread, work)
    with trio.CancelScope(shield=True):
        await answered.wait()
    return future.result()


def _submit(thread: ThreadPoolExecutor, work: Callable[[], T]) -> tuple[Future[T], trio.Event]:
    answered = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def announce(_: Future[T]) -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(answered.set)

    try:
        future = thread.submit(work)
    except RuntimeError as error:
        raise StoreError(f"the database's thread cannot work: {error}") from error
    future.add_done_callback(announce)
    return future, answered
