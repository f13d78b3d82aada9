"""A PostgreSQL database: its statements, and transactions of which none is made twice.

Rule 1: only the session that holds the lock of the schema writes.
Rule 2: each durable transaction changes the mark. After a COMMIT without an answer it tells whether
that was made. Any other mark means that another program has written, or that rows were lost: then
nothing is written any more.
Rule 3: what writes for a lease is refused once there is a newer one. Each transaction locks the row
of its lease first, which an acquisition changes.
Rule 4: a job is done again at once where the server asks for that, or the connection was lost.
A job is one transaction, or none.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TypeVar

import psycopg

from sortie.model import StoreError
from sortie.resources.lease import Lease, LeaseLost
from sortie.store.database import Row, ServerDatabase, Value
from sortie.store.postgres_address import PostgresAddress
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.postgres_errors import explanation
from sortie.store.postgres_lock import SchemaLock
from sortie.store.postgres_statements import IDENTITY, translated
from sortie.store.postgres_texts import restored_row, storable_row

T = TypeVar("T")

_TRIES = 3

_NUMBERED = {"runs": "seq", "comments_due": "rowid"}
"""Tables with a column that numbers their rows."""


class PostgresDatabase(ServerDatabase):
    """A schema on a server; nothing is asked of the server before it is used."""

    REFUSALS = (
        OverflowError,
        psycopg.DataError,
        psycopg.IntegrityError,
        psycopg.errors.ProgramLimitExceeded,
    )
    CONTRADICTIONS = (psycopg.IntegrityError,)
    ANSWER_LIMIT = 15.0

    def __init__(self, address: PostgresAddress, lease: Lease | None = None) -> None:
        self.address = address
        self.name = address.name
        self.identity = (0, 0)
        self.connection = PostgresConnection(address)
        self._lease = lease
        self._lock = SchemaLock(self.connection, 0 if lease is None else lease.token)
        self._mark: int | None = None  # the last known one
        self._doubt: int | None = None
        self._outcomes: dict[int, bool] = {}
        self._lost: tuple[float, psycopg.Error] | None = None  # when, in seconds of time.monotonic

    def perform(self, job: Callable[[PostgresDatabase], T], asked_at: float = math.inf) -> T:
        """Do a job, again where that may help.

        What was asked for before the server was last found away fails with that: of all that waits
        in line only the first waits for a server that says nothing.
        """
        if self._lease is not None:
            self._lease.require()
        if self._lost is not None and asked_at < self._lost[0]:
            raise self._lost[1].with_traceback(None)
        try:
            return self._tried(job)
        except psycopg.Error as error:
            if self.connection.is_lost:
                self._lost = (time.monotonic(), error)
            raise

    def _tried(self, job: Callable[[PostgresDatabase], T]) -> T:
        for left in reversed(range(_TRIES)):
            self.connection.live()
            try:
                return job(self)
            except psycopg.Error as error:
                if not left or not self._is_worth_a_try(error):
                    raise
        raise AssertionError("the last try has raised")

    def _is_worth_a_try(self, error: psycopg.Error) -> bool:
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            self.connection.drop()  # another host of the address may be the primary now
        if isinstance(error, psycopg.errors.SerializationFailure | psycopg.errors.DeadlockDetected):
            return True
        return self.connection.is_lost and not self.connection.was_given_up

    @property
    def may_be_used(self) -> bool:
        """Whether there is no lease, or one that is not over."""
        return self._lease is None or self._lease.is_valid

    def give_up(self) -> None:
        """Have what waits for the server fail; called from another thread."""
        self.connection.give_up()

    def close(self) -> None:
        """Close the connection, and with it end the lock."""
        self.connection.drop()

    @contextmanager
    def explained(self, attempt: str) -> Iterator[None]:
        """Turn the driver's errors into StoreError."""
        try:
            yield
        except psycopg.Error as error:
            # Not "from error": what a traceback shows of it may hold a password.
            unanswered = self.ANSWER_LIMIT if self.connection.was_given_up else None
            raise explanation(error, attempt, self.address, unanswered) from None
        except OverflowError as error:
            raise StoreError(f"cannot {attempt} the database {self.name}: {error}") from error

    def execute(self, statement: str, **values: Value) -> list[Row]:
        """Run a statement that stands in no file, or several without values; return the rows."""
        return self.connection.execute(statement, **values)

    def rows(self, query: str, **values: Value) -> list[Row]:
        """Run a named statement and return its rows."""
        return list(map(restored_row, self._run(query, values)))

    def rows_of_each(self, query: str, many: Sequence[Mapping[str, Value]]) -> list[list[Row]]:
        """Run a named statement with each of these values in turn, in few round trips."""
        if not many:
            return []
        cursor = self.connection.live().cursor()
        cursor.executemany(translated(query), map(storable_row, many), returning=True)
        found = list[list[Row]]()
        while True:
            found.append(list(map(restored_row, cursor)) if cursor.description else [])
            if not cursor.nextset():
                return found

    def change(self, query: str, **values: Value) -> int:
        """Run a named statement and return the number of rows it changed."""
        return self._run(query, values).rowcount

    def _run(self, query: str, values: dict[str, Value]) -> psycopg.Cursor[Row]:
        return self.connection.live().execute(translated(query), storable_row(values))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything inside, durably, or nothing."""
        self.take_lock()
        mark = secrets.randbits(62)
        with self._begun():
            yield
            try:
                self.execute(f"UPDATE store_state SET mark = {mark}; COMMIT")
            except psycopg.Error:
                self._doubt = mark if self.connection.is_lost else None
                raise
            self._mark = mark

    @contextmanager
    def _begun(self) -> Iterator[None]:
        """Begin a transaction as ``require_lease`` does, in one round trip."""
        with self.connection.begun(self._lease_lock) as rows:
            self._require_lease(rows)
            yield

    def require_lease(self) -> None:
        """Keep the lease from being acquired anew until the transaction ends.

        Raises LeaseLost where that has happened already.
        """
        if self._lease is not None:
            self._require_lease(len(self.execute(self._lease_lock)))

    @property
    def _lease_lock(self) -> str:
        """The statement that locks the row of the lease, which is gone with a newer one."""
        if self._lease is None:
            return ""
        shared = self.address.shared_schema.replace('"', '""')
        token = self._lease.token
        return f'SELECT token FROM "{shared}".leases WHERE token = {token:d} FOR KEY SHARE'

    def _require_lease(self, rows: int) -> None:
        if self._lease is not None and not rows:
            self._lease.refuse()
            raise LeaseLost(
                f"cannot write to the database {self.name}: another daemon leads this workflow now;"
                f" the token {self._lease.token} of {self._lease.holder} is no longer the newest"
            )

    @contextmanager
    def forgettable_transaction(self) -> Iterator[None]:
        """Write everything inside, or nothing; a crash of the server may undo it."""
        self.take_lock()
        with self._begun():
            self.execute("SET LOCAL synchronous_commit = off")
            yield
            self.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read everything inside as it stood at one moment; nothing can be written."""
        with self.connection.begun():
            self.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def every_row(self, table: str, order: str) -> Iterator[Row]:
        """Yield all rows of a table, by some columns."""
        with self.connection.begun(), self.connection.live().cursor(name="every_row") as cursor:
            for row in cursor.execute(f"SELECT * FROM {table} ORDER BY {order}".encode()):
                yield restored_row(row)

    def insert_rows(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows to a table; its numbers go on behind them."""
        bound = map(storable_row, rows)
        if (first := next(bound, None)) is None:
            return
        names, places = ", ".join(first), ", ".join(f"%({name})s" for name in first)
        insert = f"INSERT INTO {table} ({names}) VALUES ({places})"
        self.connection.live().cursor().executemany(insert.encode(), chain([first], bound))
        if (column := _NUMBERED.get(table)) is not None:
            sequence = f"pg_get_serial_sequence('{table}', '{column}')"
            newest = f"(SELECT max({column}) FROM {table})"
            self.execute(f"SELECT setval({sequence}, {newest}) WHERE {newest} IS NOT NULL")

    def clear(self, table: str) -> None:
        """Delete all rows of a table."""
        self.execute(f"DELETE FROM {table}")

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        return int(self.execute(f"SELECT count(*) AS rows FROM {table}")[0]["rows"])

    @property
    def doubt(self) -> int | None:
        """The mark of a transaction whose COMMIT had no answer, until it is known."""
        return self._doubt

    def is_made(self, mark: int) -> bool:
        """Tell once whether a transaction was made whose COMMIT had no answer."""
        self.take_lock()
        return self._outcomes.pop(mark)

    def take_lock(self) -> None:
        """Be the only session that writes.

        Raises StoreError where another one is, or was since this database was written last.
        """
        if self._lock.is_held:
            return
        self.require_lease()
        self._lock.take()
        if self._mark is not None:
            self._compare_mark()

    def begin(self) -> None:
        """Take what the database holds now as what is known of it; the lock is held already."""
        self._mark = self._current_mark()
        (row,) = self.execute(IDENTITY)
        self.identity = (row["server"] % (1 << 64), row["database"] << 32 | row["schema"])

    def _current_mark(self) -> int:
        (row,) = self.execute("SELECT mark FROM store_state")
        return int(row["mark"])

    def _compare_mark(self) -> None:
        mark = self._current_mark()
        if mark not in (self._mark, self._doubt):
            self.connection.drop()
            raise StoreError(
                f"the database {self.name} is not as this daemon left it: another one has worked"
                " with it meanwhile, or the server lost what was recorded last, as a standby may"
                " that was behind; restart this daemon"
            )
        if self._doubt is not None:
            self._outcomes[self._doubt] = mark == self._doubt
        self._mark, self._doubt = mark, None

    def check(self, *, doubted: bool) -> None:
        """See that this session may write; a row is written only where there is a doubt."""
        self.take_lock()
        if doubted:
            with self.transaction():
                self.change("prove_writable")
        elif self.execute("SHOW transaction_read_only")[0]["transaction_read_only"] == "on":
            self.connection.drop()
            raise StoreError(
                f"cannot write to the database {self.name}: the server is read-only, as a standby"
                " is; name the primary in store.url"
            )
