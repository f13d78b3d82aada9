"""The schema of PostgreSQL is that of SQLite, and every statement fits it."""

from __future__ import annotations

import re
import sqlite3

import psycopg
import pytest

from sortie.model import StoreError
from sortie.store.database import queries
from sortie.store.postgres import open_postgres
from sortie.store.postgres_address import PostgresAddress, parse_address
from sortie.store.postgres_database import PostgresDatabase
from sortie.store.postgres_schema import postgres_migrations
from sortie.store.postgres_statements import translated
from sortie.store.schema_versions import Migration, migrations
from tests.store.postgres_server import PostgresServer

_OWN = {("store_state", "version"), ("store_state", "mark"), ("comments_due", "rowid")}
_OF_SQLITE = re.compile(r"PRAGMA|pragma_")
_TYPES = {"bigint": "INTEGER", "double precision": "REAL", "text": "TEXT"}


@pytest.fixture
def address(postgres_server: PostgresServer) -> PostgresAddress:
    """Where nothing is yet."""
    return parse_address(postgres_server.url, postgres_server.schema())


def test_both_have_the_same_columns(
    address: PostgresAddress, postgres_server: PostgresServer
) -> None:
    """Tables, names, types and which columns may be empty."""
    open_postgres(address).close()
    found = postgres_server.ask(
        "SELECT table_name::text, column_name::text, data_type::text, is_nullable = 'NO'"
        " FROM information_schema.columns WHERE table_schema = %s",
        address.schema,
    )
    file = sqlite3.connect(":memory:")
    for step in migrations():
        file.executescript(step.script)
    tables = [name for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type='table'")]

    on_server = {
        (table, column, _TYPES[str(kind)], required)
        for table, column, kind, required in found
        if (table, column) not in _OWN
    }
    in_file = {
        (table, name, kind, bool(required or key))
        for table in tables
        for _, name, kind, required, _, key in file.execute(f"PRAGMA table_info({table})")
    }

    assert on_server == in_file


def test_every_statement_fits_the_schema(address: PostgresAddress) -> None:
    """Each compiles on a server, with values of unknown type."""
    database = open_postgres(address)
    names = [name for name, text in queries().items() if not _OF_SQLITE.search(text)]

    for name in names:
        numbered = re.sub(r"%\((at|delay)\)s", "1.5", translated(name).decode())
        statement = re.sub(r"%\(\w+\)s", "NULL", numbered)
        database.execute(f"EXPLAIN {statement}")
    database.close()

    assert len(names) > 60


def test_later_migrations_are_shared() -> None:
    """What is written for a SQLite file is made to fit, unless there is an own text."""
    number = len(migrations()) + 1
    later = Migration(version=number, script="CREATE TABLE t (a INTEGER, b REAL) STRICT;")

    made = postgres_migrations((*migrations(), later))

    assert made[-1].script == "CREATE TABLE t (a BIGINT, b DOUBLE PRECISION);"
    assert [step.version for step in made] == [*range(16, number + 1)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE {}.store_state SET version = 999", "was made by a newer version of Sortie"),
        ("DROP TABLE {}.store_state", "the schema belongs to another program"),
    ],
)
def test_a_schema_of_somebody_else_is_left_alone(
    address: PostgresAddress, postgres_server: PostgresServer, change: str, said: str
) -> None:
    """A newer one, or another program's, is refused."""
    open_postgres(address).close()
    postgres_server.ask(change.format(address.schema))

    with pytest.raises(StoreError, match=said):
        open_postgres(address)


def test_a_schema_that_cannot_be_made_whole_is_not_made(
    address: PostgresAddress, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All steps are made or none."""
    broken = Migration(version=16, script="CREATE TABLE one (a BIGINT); SELECT nothing;")
    monkeypatch.setattr("sortie.store.postgres_schema.postgres_migrations", lambda: (broken,))

    with pytest.raises(StoreError, match="its tables are not as they should be"):
        open_postgres(address)

    assert not postgres_server.ask("SELECT 1 FROM pg_namespace WHERE nspname = %s", address.schema)


def test_a_user_without_rights_is_told_what_is_needed(postgres_server: PostgresServer) -> None:
    """Who may not make a schema is told how to get one; one that was made for the user will do."""
    login, schema = f"u_{postgres_server.schema()}", postgres_server.schema()
    postgres_server.ask(f"CREATE ROLE {login} LOGIN PASSWORD 'secret-of-user'")
    url = f"postgresql://{login}:secret-of-user@127.0.0.1:{postgres_server.port}/sortie"
    address = parse_address(url, schema)

    with pytest.raises(StoreError, match="this user lacks a right; make the schema with CREATE"):
        open_postgres(address)
    postgres_server.ask(f"CREATE SCHEMA {schema} AUTHORIZATION {login}")
    database = open_postgres(address)

    assert isinstance(database, PostgresDatabase)
    assert database.row("paused") == {"paused": 0}
    database.close()


def test_a_database_in_another_encoding_is_refused(postgres_server: PostgresServer) -> None:
    """It could not hold what issues say."""
    name = f"latin_{postgres_server.schema()}"
    postgres_server.ask(
        f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
        database="postgres",
    )
    address = parse_address(postgres_server.url.removesuffix("sortie") + name, "sortie")

    with pytest.raises(StoreError, match="its encoding is LATIN1; make one with createdb"):
        open_postgres(address)


def test_schemas_are_apart(postgres_server: PostgresServer) -> None:
    """Two workflows in one database have two daemons."""
    one, two = (parse_address(postgres_server.url, postgres_server.schema()) for _ in range(2))
    first, second = open_postgres(one), open_postgres(two)

    with first.transaction():
        first.change("set_paused", paused=1)

    assert (first.row("paused"), second.row("paused")) == ({"paused": 1}, {"paused": 0})
    assert first.identity != second.identity
    first.close()
    second.close()


def test_a_name_of_a_schema_may_be_any(postgres_server: PostgresServer) -> None:
    """Quotes and capitals in it stand for themselves."""
    schema = f'Team "{postgres_server.schema()}" %s; --'
    open_postgres(parse_address(postgres_server.url, schema)).close()

    found = postgres_server.ask("SELECT 1 FROM pg_namespace WHERE nspname = %s", schema)

    assert found == [(1,)]


def test_the_tests_themselves_are_ordinary(postgres_server: PostgresServer) -> None:
    """A wrong password is refused by the server, so that the right one means something."""
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres_server.url.replace("hush", "rush"))
