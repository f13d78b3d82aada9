"""The advisory lock of a schema, which the session of one daemon holds.

It ends with the session: once it can be taken the earlier session is gone, with whatever that one
had under way. A daemon's session is called after the token of its lease, so that the next leader
can end it.
"""

from __future__ import annotations

import re
import time
from hashlib import sha256

from sortie.model import StoreError
from sortie.store.database import Row
from sortie.store.postgres_connection import PostgresConnection

PATIENCE = 5.0
"""Seconds to wait for the lock of a session that is ending."""

_LEADER = re.compile(r"sortie leader (\d+)")

_HOLDERS = """
SELECT activity.pid, activity.application_name AS name, activity.client_addr::text AS client,
  activity.usename::text AS login
FROM pg_locks JOIN pg_stat_activity AS activity ON activity.pid = pg_locks.pid
WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND classid = %(high)s::bigint::oid AND objid = %(low)s::bigint::oid
"""


def session_name(token: int) -> str:
    """Return what the session is called that writes for a lease."""
    return f"sortie leader {token}"


def end_leader(connection: PostgresConnection, schema: str, newest: int) -> None:
    """End the session that holds the lock of a schema, if its lease has this token or an older one.
    Raises psycopg.Error."""
    for holder in _holders(connection, _key_of(schema)):
        named = _LEADER.fullmatch(holder["name"] or "")
        if named is not None and int(named[1]) <= newest:
            _end(connection, holder["pid"])


def _key_of(schema: str) -> int:
    return int.from_bytes(sha256(f"sortie {schema}".encode()).digest()[:8])


def _holders(connection: PostgresConnection, key: int) -> list[Row]:
    return connection.execute(_HOLDERS, high=key >> 32, low=key & 0xFFFFFFFF)


def _end(connection: PostgresConnection, pid: int) -> None:
    connection.execute("SELECT pg_terminate_backend(%(pid)s::int)", pid=pid)


class SchemaLock:
    """Held by one session of a connection; methods raise psycopg.Error. ``token`` is that of the
    lease for which the session writes, 0 without one."""

    def __init__(self, connection: PostgresConnection, token: int = 0) -> None:
        self._connection = connection
        self._key = _key_of(connection.address.schema)
        self._token = token
        self._session = 0

    @property
    def is_held(self) -> bool:
        """Whether the present connection holds it."""
        self._connection.live()
        return self._session == self._connection.session

    def take(self) -> None:
        """Hold it from now on. Raises StoreError, naming the holder, where another one does."""
        patience = time.monotonic() + PATIENCE
        if self._token:
            name = session_name(self._token)
            self._connection.execute("SELECT set_config('application_name', %(n)s, false)", n=name)
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
            for holder in _holders(self._connection, self._key):
                if holder["pid"] in self._connection.pids:
                    # The server has not noticed that this session of ours was lost.
                    _end(self._connection, holder["pid"])
            if self._token:
                end_leader(self._connection, self._connection.address.schema, self._token - 1)
        return bool(row["taken"])

    def _in_use(self) -> str:
        name = self._connection.address.name
        for holder in _holders(self._connection, self._key):
            return (
                f"the database {name} is in use by another daemon ({holder['name']}, user"
                f" {holder['login']}, from {holder['client'] or 'a local socket'}, process"
                f" {holder['pid']} of the server); stop that one, or name another schema with"
                " store.schema"
            )
        return f"the database {name} was in use by another daemon until now; try again"
