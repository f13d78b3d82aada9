"""What a PostgreSQL server tells of itself, asked without changing anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing

from msgspec import Struct

from sortie.store.postgres_address import PostgresAddress
from sortie.store.postgres_database import PostgresDatabase
from sortie.store.postgres_schema import schema_version

_QUESTIONS = 5
_ABOUT = """
SELECT current_setting('server_version') AS version, current_user::text AS login,
  pg_is_in_recovery() AS standby,
  coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS encrypted,
  has_database_privilege(current_database(), 'CREATE') AS may_create,
  EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = %(schema)s) AS has_schema,
  coalesce((
    SELECT has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE')
    FROM pg_namespace WHERE nspname = %(schema)s
  ), false) AS may_use,
  current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes
"""


class AboutServer(Struct, frozen=True, kw_only=True):
    """What a server is; ``latency`` and ``clock_ahead`` are seconds.

    ``has_schema``: the schema is there, empty or not.
    """

    name: str
    version: str
    login: str
    is_standby: bool
    is_encrypted: bool
    may_create: bool
    may_use: bool
    settings: Mapping[str, str]
    has_schema: bool
    latency: float
    clock_ahead: float


def about_server(address: PostgresAddress, wall: Callable[[], float]) -> AboutServer:
    """Ask a server; ``wall`` is this machine's clock.

    Raises StoreError, also for a schema that is another program's, or of a newer version.
    """
    database = PostgresDatabase(address)
    with (
        database.explained("ask"),
        closing(database),
        database.connection.answering(database.ANSWER_LIMIT),
    ):
        (row,) = database.execute(_ABOUT, schema=address.schema)
        rounds = [_asked(database, wall) for _ in range(_QUESTIONS)]
        latency, clock_ahead = min(rounds)
        if row["may_use"]:
            schema_version(database)
        return AboutServer(
            name=address.name,
            version=row["version"],
            login=row["login"],
            is_standby=row["standby"],
            is_encrypted=row["encrypted"],
            may_create=row["may_create"],
            may_use=row["may_use"],
            settings={name: row[name] for name in ("fsync", "full_page_writes")},
            has_schema=row["has_schema"],
            latency=latency,
            clock_ahead=clock_ahead,
        )


def _asked(database: PostgresDatabase, wall: Callable[[], float]) -> tuple[float, float]:
    """Return how long an answer took, and how far the server's clock is ahead of this one."""
    begun, here = time.monotonic(), wall()
    (row,) = database.execute("SELECT extract(epoch FROM clock_timestamp())::float8 AS now")
    took = time.monotonic() - begun
    return took, row["now"] - here - took / 2
