"""What a server tells of the leases in its shared schema, asked without changing them."""

from __future__ import annotations

import psycopg
from msgspec import Struct, structs

from sortie.store.leases import Fleet, LeaseStanding
from sortie.store.postgres_address import PostgresAddress
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.postgres_errors import explanation
from sortie.store.postgres_fleet import FleetWatch
from sortie.store.postgres_leases import PostgresLeases
from sortie.store.postgres_shared import is_up_to_date

_RIGHTS = """
SELECT current_user::text AS login,
  has_database_privilege(current_database(), 'CREATE') AS may_create,
  EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = %(schema)s) AS has_schema,
  coalesce((
    SELECT has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE')
    FROM pg_namespace WHERE nspname = %(schema)s
  ), false) AS may_use,
  coalesce((
    SELECT bool_and(has_table_privilege(pg_class.oid, 'SELECT, INSERT, UPDATE, DELETE'))
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = %(schema)s AND relkind = 'r'
  ), true) AS may_write
"""


class AboutLeases(Struct, frozen=True, kw_only=True):
    """The shared schema, and whether ``login`` may use or make it. ``standing`` and ``fleet`` are
    None where no daemon has made its tables yet, and ``standing`` also where none has wanted to
    lead the workflow."""

    schema: str
    login: str
    has_schema: bool
    may_use: bool
    may_create: bool
    standing: LeaseStanding | None = None
    fleet: Fleet | None = None


def about_leases(address: PostgresAddress) -> AboutLeases:
    """Ask the server of a workflow's address. Raises StoreError, also for a newer schema."""
    shared = address.of_shared_schema()
    connection = PostgresConnection(shared)
    try:
        (row,) = connection.execute(_RIGHTS, schema=shared.schema)
        may_use = row["may_use"] and row["may_write"]
        about = AboutLeases(
            schema=shared.schema,
            login=row["login"],
            has_schema=row["has_schema"],
            may_use=may_use,
            may_create=row["may_create"],
        )
        if not may_use or not is_up_to_date(connection):
            return about
        workflow = address.schema
        standings = PostgresLeases(connection, "", "").standings([workflow])
        fleet = FleetWatch(connection).see([workflow], 0.0)
    except psycopg.Error as error:
        raise explanation(error, "ask for the leases of", shared) from None
    finally:
        connection.drop()
    return structs.replace(about, standing=standings.get(workflow), fleet=fleet)
