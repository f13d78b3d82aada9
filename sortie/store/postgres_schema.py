"""Bring a schema of PostgreSQL to this version; migrations are only ever added.

It begins with what the migrations of a SQLite file had made when PostgreSQL came. Later ones are
written once for both, or stand in ``migrations/postgresql`` too where they must differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

from sortie.model import StoreError
from sortie.store.postgres_database import PostgresDatabase
from sortie.store.schema_versions import Migration, migrations

FIRST = 16
"""The version that the first migration of PostgreSQL leads to, from nothing."""

_TYPES = (
    (re.compile(r"\bINTEGER\b"), "BIGINT"),
    (re.compile(r"\bREAL\b"), "DOUBLE PRECISION"),
    (re.compile(r"\) (?:STRICT|WITHOUT ROWID);"), ");"),
)


def postgres_migrations(shared: Sequence[Migration] | None = None) -> tuple[Migration, ...]:
    """Return the migrations of this version in their order; ``shared`` are those of a file."""
    folder = files("sortie.store").joinpath("migrations", "postgresql")
    own = {
        int(entry.name[:4]): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    }
    steps = migrations() if shared is None else shared
    later = {step.version: _translated(step.script) for step in steps[FIRST:]}
    scripts = later | own
    return tuple(Migration(version=number, script=scripts[number]) for number in sorted(scripts))


def _translated(script: str) -> str:
    for pattern, replacement in _TYPES:
        script = pattern.sub(replacement, script)
    return script


def schema_version(database: PostgresDatabase) -> int:
    """Return the version of a schema, 0 where it is empty or not there; changes nothing.

    Raises StoreError for a schema of a newer version or of another program.
    """
    schema = database.address.schema
    tables = database.execute(
        "SELECT c.relname::text AS name FROM pg_class AS c"
        " JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = %(schema)s",
        schema=schema,
    )
    if not tables:
        return 0
    if {"name": "store_state"} not in tables:
        raise StoreError(
            f"cannot use the database {database.name}: the schema belongs to another program;"
            " name another with store.schema"
        )
    version = int(database.execute("SELECT version FROM store_state")[0]["version"])
    if version > len(migrations()):
        raise StoreError(
            f"cannot use the database {database.name}: its schema {version} was made by a newer"
            f" version of Sortie, this one knows {len(migrations())}; install the newer version,"
            " or name another schema with store.schema"
        )
    return version


def migrate(database: PostgresDatabase) -> None:
    """Make the schema, or apply the steps that it lacks, all of them or none.

    Raises StoreError as ``schema_version`` does.
    """
    version = schema_version(database)
    if version == len(migrations()):
        return
    with database.connection.begun():
        database.require_lease()
        if not database.execute(
            "SELECT 1 AS there FROM pg_namespace WHERE nspname = %(schema)s",
            schema=database.address.schema,
        ):
            name = database.address.schema.replace('"', '""')
            database.execute(f'CREATE SCHEMA "{name}"')
        for step in postgres_migrations():
            if step.version > version:
                database.execute(step.script)
        if not version:
            database.execute("INSERT INTO store_state (version, mark) VALUES (0, 0)")
        database.execute(f"UPDATE store_state SET version = {len(migrations())}; COMMIT")


def require_schema(database: PostgresDatabase) -> None:
    """Raise StoreError unless a schema is this version's; for readers, which change nothing."""
    version = schema_version(database)
    if version == 0:
        raise StoreError(f"there is no database {database.name}: no daemon has run with it yet")
    if version < len(migrations()):
        raise StoreError(
            f"cannot read the database {database.name}: its schema {version} is older than this"
            f" version's {len(migrations())}; start `sortie run` once to bring it up to date"
        )
