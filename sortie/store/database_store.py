"""The store in a database: each method is a job for the thread that owns the connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from sortie.model import ProcessIdentity, RunId, Sighting, Spending, StoreError
from sortie.scheduler.records import Record
from sortie.store import DayRow, HistoryRow, RecordRefused, Recovered, Totals
from sortie.store.database import Database, Value
from sortie.store.database_thread import DatabaseThread
from sortie.store.identity import (
    DatabaseIdentity,
    begin_life,
    forget_path_name,
    read_identity,
)
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


class DatabaseStore:
    """A Store on a database that a thread of its own holds.

    Changes are numbered in the order in which they are made. While ``_failed`` is beyond
    ``_succeeded``, the last try to write failed: only a commit proves that the next will not.
    """

    def __init__(self, thread: DatabaseThread) -> None:
        self._thread = thread
        self._inherited = 0  # the last seq of an earlier daemon
        self._asked = self._failed = self._succeeded = 0

    @property
    def name(self) -> str:
        """What messages call the database."""
        return self._thread.name

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
        return await self._change(partial(_forget_runs, before=before, limit=max(0, limit)))

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

    async def change(self, job: Callable[[Database], T]) -> T:
        """Do a job that writes."""
        return await self._change(job)

    async def read(self, job: Callable[[Database], T]) -> T:
        """Do a job that only reads."""
        return await self._thread.read(job)

    async def check(self) -> None:
        """See that the database can be written, as ``Database.check`` does."""
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
    notes: list[dict[str, Value]] = [
        {"issue_id": issue_id, "digest": digest, "at": at} for issue_id, digest in digests.items()
    ]
    with database.forgettable_transaction():
        database.rows_of_each("note_sighting", notes)
        seen = database.rows_of_each("sighting", [{"issue_id": issue_id} for issue_id in digests])
    return {issue_id: sighting(row) for issue_id, (row,) in zip(digests, seen, strict=True)}


def _forget_runs(database: Database, before: float, limit: int) -> int:
    with database.transaction():
        return database.change("forget_runs", before=before, limit=limit)


def _check(database: Database, *, doubted: bool) -> None:
    database.check(doubted=doubted)
