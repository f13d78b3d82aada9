"""The advisory lock of a schema, which the session of one daemon holds.

It ends with the session. Who takes it again is certain that the earlier session is gone, whatever
that one had under way.
"""

from __future__ import annotations

import time
from hashlib import sha256

from sortie.model import StoreError
from sortie.store.database import Row
from sortie.store.postgres_connection import PostgresConnection

PATIENCE = 5.0
"""Seconds to wait for the lock of a session that is ending."""

_HOLDERS = """
SELECT activity.pid, activity.application_name AS name, activity.client_addr::text AS client,
  activity.usename::text AS login
FROM pg_locks JOIN pg_stat_activity AS activity ON activity.pid = pg_locks.pid
WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND classid = %(high)s::bigint::oid AND objid = %(low)s::bigint::oid
"""


class SchemaLock:
    """Held by one session of a connection; methods raise psycopg.Error."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        digest = sha256(f"sortie {connection.address.schema}".encode()).digest()
        self._key = int.from_bytes(digest[:8])
        self._session = 0

    @property
    def is_held(self) -> bool:
        """Whether the present connection holds it."""
        self._connection.live()
        return self._session == self._connection.session

    def take(self) -> None:
        """Hold it from now on. Raises StoreError, naming the holder, where another one does."""
        patience = time.monotonic() + PATIENCE
        while not self._is_taken():
            if time.monotonic() > patience:
                raise StoreError(self._in_use())
            time.sleep(0.05)
        self._session = self._connection.session

    def _is_taken(self) -> bool:
        key = self._key - (1 << 64) if self._key >= 1 << 63 else self._key
        statement = "SELECT pg_try_advisory_lock(%(key)s::bigint) AS taken"
        (row,) = self._connection.execute(statement, key=key)
        if not row["taken"]:
            for holder in self._holders():
                if holder["pid"] in self._connection.pids:
                    # The server has not noticed that this session of ours was lost.
                    end = "SELECT pg_terminate_backend(%(pid)s::int)"
                    self._connection.execute(end, pid=holder["pid"])
        return bool(row["taken"])

    def _holders(self) -> list[Row]:
        high, low = self._key >> 32, self._key & 0xFFFFFFFF
        return self._connection.execute(_HOLDERS, high=high, low=low)

    def _in_use(self) -> str:
        name = self._connection.address.name
        for holder in self._holders():
            return (
                f"the database {name} is in use by another daemon ({holder['name']}, user"
                f" {holder['login']}, from {holder['client'] or 'a local socket'}, process"
                f" {holder['pid']} of the server); stop that one, or name another schema with"
                " store.schema"
            )
        return f"the database {name} was in use by another daemon until now; try again"
