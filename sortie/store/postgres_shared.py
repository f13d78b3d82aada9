"""The schema that all daemons of a database share.

Scripts are only ever added to, and leave what is there as it was: while daemons are upgraded one
after the other, an older one works with the tables of a newer one.
"""

from __future__ import annotations

from importlib.resources import files

from sortie.store.postgres_connection import PostgresConnection

_DDL_LOCK = 0x536F72746965  # "Sortie": one session at a time makes or changes such a schema


def bring_up_to_date(connection: PostgresConnection) -> None:
    """Make the schema that the connection's address names, or apply the scripts that it lacks.

    One of a newer version is used as it is. Raises psycopg.Error.
    """
    scripts = shared_scripts()
    if _version(connection) >= len(scripts):
        return
    schema = connection.address.schema
    with connection.begun():
        connection.execute(f"SELECT pg_advisory_xact_lock({_DDL_LOCK})")
        version = _version(connection)
        if version >= len(scripts):
            return
        if not _has_schema(connection):
            name = schema.replace('"', '""')
            connection.execute(f'CREATE SCHEMA "{name}"')
        if version == 0:
            connection.execute("CREATE TABLE shared_state (version bigint NOT NULL)")
            connection.execute("INSERT INTO shared_state (version) VALUES (0)")
        for script in scripts[version:]:
            connection.execute(script)
        connection.execute(f"UPDATE shared_state SET version = {len(scripts)}; COMMIT")


def is_up_to_date(connection: PostgresConnection) -> bool:
    """Tell whether the schema is there as this version makes it, without changing it.

    One of a newer version is used as it is. Raises psycopg.Error.
    """
    return _version(connection) >= len(shared_scripts())


def shared_scripts() -> tuple[str, ...]:
    """Return the scripts that lead to the schema of this version, in their order."""
    folder = files("sortie.store").joinpath("shared_schema")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def _has_schema(connection: PostgresConnection) -> bool:
    statement = "SELECT 1 AS there FROM pg_namespace WHERE nspname = %(schema)s"
    return bool(connection.execute(statement, schema=connection.address.schema))


def _version(connection: PostgresConnection) -> int:
    """Return the version of the schema, 0 where it was not made yet."""
    found = connection.execute(
        "SELECT 1 AS there FROM pg_tables"
        " WHERE schemaname = %(schema)s AND tablename = 'shared_state'",
        schema=connection.address.schema,
    )
    if not found:
        return 0
    return int(connection.execute("SELECT version FROM shared_state")[0]["version"])
