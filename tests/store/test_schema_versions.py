"""Databases are brought to this version's schema, or left alone with a reason."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import trio

from sortie.model import StoreError
from sortie.store.schema_versions import APPLICATION_ID, Migration, migrate, migrations
from sortie.store.sqlite import open_store
from sortie.store.sqlite_database import SqliteDatabase

ONE = Migration(version=1, script="CREATE TABLE one (a);\nINSERT INTO one VALUES (1);\n")
TWO = Migration(version=2, script="ALTER TABLE one ADD COLUMN b;\nUPDATE one SET b = 2;\n")
BROKEN = Migration(
    version=3,
    script="CREATE TABLE three (a);\nUPDATE one SET a = 9;\nINSERT INTO missing VALUES (1);",
)


def a_database(path: Path) -> tuple[SqliteDatabase, sqlite3.Connection]:
    """An open database, and the connection it works on."""
    connection = sqlite3.connect(path, isolation_level=None)
    return SqliteDatabase(connection, str(path)), connection


def dump(path: Path) -> tuple[int, list[str]]:
    """The schema's version and all that a database holds."""
    connection = sqlite3.connect(path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    lines = list(connection.iterdump())
    connection.close()
    return version, lines


def test_only_missing_steps_are_applied(tmp_path: Path) -> None:
    """A database of an older version gets what it lacks and keeps what it holds."""
    place = tmp_path / "x.db"
    database, connection = a_database(place)

    migrate(database, [ONE])
    migrate(database, [ONE, TWO])
    migrate(database, [ONE, TWO])
    rows = connection.execute("SELECT a, b FROM one").fetchall()
    (owner,) = connection.execute("PRAGMA application_id").fetchone().values()

    assert [tuple(row.values()) for row in rows] == [(1, 2)]
    assert owner == APPLICATION_ID
    assert dump(place)[0] == 2


def test_a_step_that_fails_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    """All missing steps are made or none, so that an older version can still use the file."""
    place = tmp_path / "x.db"
    database, _ = a_database(place)
    migrate(database, [ONE])
    before = dump(place)

    with pytest.raises(sqlite3.OperationalError, match="missing"):
        migrate(database, [ONE, TWO, BROKEN])
    after = dump(place)
    migrate(database, [ONE, TWO])

    assert after == before
    assert dump(place)[0] == 2


async def test_a_newer_schema_is_refused_and_untouched(tmp_path: Path) -> None:
    """A database of a newer version stays byte for byte, and the error says what to do."""
    place = tmp_path / "sortie.db"
    async with open_store(str(place)):
        pass
    connection = sqlite3.connect(place)
    connection.execute("PRAGMA user_version = 99")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    before = place.read_bytes()

    with pytest.raises(StoreError) as caught:
        async with open_store(str(place)):
            pass

    assert str(caught.value) == (
        f"cannot use the database {place}: its schema 99 was made by a newer version of Sortie, "
        f"this one knows {len(migrations())}; install the newer version, or name another file with "
        "db_path"
    )
    assert place.read_bytes() == before


@pytest.mark.parametrize("version", [0, 1, 99])
async def test_another_programs_database_is_refused_and_untouched(
    tmp_path: Path, version: int
) -> None:
    """A database with other tables is nobody's to migrate."""
    place = tmp_path / "theirs.db"
    connection = sqlite3.connect(place)
    connection.execute("CREATE TABLE theirs (a)")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = place.read_bytes()

    with pytest.raises(StoreError) as caught:
        async with open_store(str(place)):
            pass

    assert str(caught.value) == (
        f"cannot use the database {place}: it belongs to another program; name another file with "
        "db_path"
    )

    assert place.read_bytes() == before


async def test_several_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    """Whoever comes second finds the migrations made."""
    place = str(tmp_path / "sortie.db")
    opened = 0

    async def open_and_check() -> None:
        nonlocal opened
        async with open_store(place) as store:
            await store.check()
            opened += 1

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(open_and_check)

    assert opened == 5
