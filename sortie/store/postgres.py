"""The store on a PostgreSQL server. Importing it needs psycopg, the extra ``sortie[postgres]``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import TypeVar

from sortie.config.store import StoreSettings
from sortie.resources.lease import Lease
from sortie.scheduler.records import Record
from sortie.store.database import Database
from sortie.store.database_store import DatabaseStore
from sortie.store.database_thread import DatabaseThread, open_thread
from sortie.store.doubted_commits import DoubtedCommits
from sortie.store.postgres_address import PostgresAddress, parse_address
from sortie.store.postgres_database import PostgresDatabase
from sortie.store.postgres_leases import forget_leaderships
from sortie.store.postgres_schema import migrate, require_schema
from sortie.store.record_writer import write

T = TypeVar("T")

MIGRATION_LIMIT = 600.0
"""Seconds after which a server is given up that is to make or change the tables."""


def open_postgres(address: PostgresAddress, lease: Lease | None = None) -> PostgresDatabase:
    """Open a database for writing, made or migrated where needed; call it in the owning thread.

    ``lease`` is what a daemon writes for. Raises StoreError, also where another one writes.
    """
    database = PostgresDatabase(address, lease)
    with database.explained("open"):
        try:
            with database.connection.answering(database.ANSWER_LIMIT):
                database.take_lock()
            with database.connection.answering(MIGRATION_LIMIT):
                migrate(database)
            with database.connection.answering(database.ANSWER_LIMIT):
                database.begin()
                database.check(doubted=True)
        except BaseException:
            database.close()
            raise
    return database


def address_of(store: StoreSettings) -> PostgresAddress:
    """Return the address that the settings name. Raises StoreError."""
    assert store.url is not None
    return parse_address(store.url.get_secret_value(), store.schema_name, store.shared_schema)


def read_beside(address: PostgresAddress, job: Callable[[Database], T]) -> T:
    """Do a job that only reads, beside a daemon or without one. Raises StoreError."""
    database = PostgresDatabase(address)
    with database.explained("read"), closing(database):
        with database.connection.answering(database.ANSWER_LIMIT):
            require_schema(database)
        with database.reading():
            return job(database)


@asynccontextmanager
async def open_postgres_store(
    address: PostgresAddress, lease: Lease | None = None
) -> AsyncIterator[PostgresStore]:
    """Open the store of an address. Raises StoreError as ``open_postgres`` does."""
    async with open_thread(partial(open_postgres, address, lease)) as thread:
        yield PostgresStore(thread, lease)


class PostgresStore(DatabaseStore):
    """A Store that knows which records may have been written when a COMMIT had no answer."""

    def __init__(self, thread: DatabaseThread, lease: Lease | None = None) -> None:
        super().__init__(thread)
        self._has_lease = lease is not None
        self._doubted = DoubtedCommits()

    async def commit(self, records: Sequence[Record], at: float) -> None:
        """Write all records, or none; once handed over, also if the caller is cancelled."""
        if records:
            await self._change(partial(self._write, records=tuple(records), at=at))

    async def forget_runs(self, before: float, limit: int) -> int:
        """Delete old runs as a Store does, and once none is left old leaderships, too."""
        forgotten = await super().forget_runs(before, limit)
        if self._has_lease and not forgotten:
            await self._change(partial(_forget_leaderships, before=before))
        return forgotten

    def _write(self, database: Database, records: tuple[Record, ...], at: float) -> None:
        """Write records in the database's thread, but for those that were written before."""
        assert isinstance(database, PostgresDatabase)
        self._doubted.settle(database.is_made)
        try:
            if rest := self._doubted.unmade(records):
                write(database, rest, at, self._inherited)
            else:
                # What was made may be lost yet with its server, until a later commit has succeeded.
                database.check(doubted=True)
        except Exception:
            self._doubted.failed(records, database.doubt)
            raise
        self._doubted.succeeded(records)


def _forget_leaderships(database: Database, before: float) -> None:
    assert isinstance(database, PostgresDatabase)
    with database.transaction():
        forget_leaderships(database.connection, before)
