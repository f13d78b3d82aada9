"""A connection to a PostgreSQL server that is made anew after it was lost.

Rule 1: a transaction lives and dies with its connection: what follows in it never comes to another.
Rule 2: a thread that waits for a server which does not answer can be let go by another one.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from sortie.model import StoreError
from sortie.store.database import Row, Value
from sortie.store.postgres_address import PostgresAddress
from sortie.store.postgres_texts import IntegerLoader

OLDEST_VERSION = 14
"""The oldest PostgreSQL whose servers will do."""

_ABOUT = """
SELECT current_setting('server_version_num')::int AS version,
  current_setting('server_version') AS version_text,
  current_setting('server_encoding') AS encoding,
  current_setting('synchronous_commit') AS synchronous,
  pg_backend_pid() AS pid
"""


class PostgresConnection:
    """The way to a server, in autocommit mode outside ``begun``; one thread uses it.

    ``session`` counts the connections that were made, and ``pids`` are those of their processes on
    the server. Methods raise psycopg.Error.
    """

    def __init__(self, address: PostgresAddress) -> None:
        self.address = address
        self.session = 0
        self.pids: set[int] = set()
        self._connection: psycopg.Connection[Row] | None = None
        self._in_transaction = False
        self._guard = threading.Lock()  # for ``give_up``, which another thread calls
        self.was_given_up = False

    @property
    def is_lost(self) -> bool:
        """Whether there is no connection, or none any more."""
        return self._connection is None or self._connection.closed

    def live(self) -> psycopg.Connection[Row]:
        """Return the connection; a new one where it was lost, but not within a transaction.

        Raises StoreError for a server that cannot serve.
        """
        if self._connection is not None and (self._in_transaction or not self._connection.closed):
            return self._connection
        self.drop()
        self.was_given_up = False
        connection = psycopg.connect(
            **dict[str, Any](self.address.parameters), autocommit=True, row_factory=dict_row
        )
        with self._guard:
            self._connection = connection
        self.session += 1
        self.pids.add(_prepare(connection, self.address))
        return connection

    def execute(self, statement: str, **values: Value | Sequence[Value]) -> list[Row]:
        """Run a statement that stands in no file, or several without values; return the rows."""
        cursor = self.live().execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    @contextmanager
    def begun(self, first: str = "") -> Iterator[int]:
        """Begin a transaction; what the block has not committed is undone.

        ``first`` is a statement that goes with the BEGIN, in the same round trip; the number of its
        rows is given.
        """
        connection = self.live()
        self._in_transaction = True
        try:
            cursor = connection.execute(f"BEGIN; {first}".encode())
            yield cursor.rowcount if cursor.nextset() else 0
        finally:
            self._in_transaction = False
            if connection.info.transaction_status != TransactionStatus.IDLE:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")

    def drop(self) -> None:
        """Close the connection, if there is one; with it end its locks."""
        with self._guard:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def answering(self, limit: float) -> Iterator[None]:
        """Give the server up where the block takes longer than so many seconds."""
        timer = threading.Timer(limit, self.give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def give_up(self) -> None:
        """Have what waits for the server fail; called from another thread."""
        with self._guard, suppress(OSError, psycopg.Error):
            if self._connection is not None:
                self.was_given_up = True
                with socket.socket(fileno=os.dup(self._connection.fileno())) as shared:
                    shared.shutdown(socket.SHUT_RDWR)


def _prepare(connection: psycopg.Connection[Row], address: PostgresAddress) -> int:
    """Set what the rows depend on; return the pid of the server's process. Raises StoreError."""
    connection.adapters.register_loader("numeric", IntegerLoader)
    about = connection.execute(_ABOUT).fetchone()
    assert about is not None
    if about["version"] < OLDEST_VERSION * 10_000:
        raise StoreError(
            f"cannot use the database {address.name}: its server is PostgreSQL"
            f" {about['version_text']}, and {OLDEST_VERSION} is the oldest that will do"
        )
    if about["encoding"] != "UTF8":
        raise StoreError(
            f"cannot use the database {address.name}: its encoding is {about['encoding']}; make one"
            " with createdb --encoding UTF8 --template template0"
        )
    if about["synchronous"] == "off":
        connection.execute("SET synchronous_commit = on")
    connection.execute("SELECT set_config('search_path', quote_ident(%s), false)", [address.schema])
    connection.execute("SET lock_timeout = '5s'")
    return int(about["pid"])
