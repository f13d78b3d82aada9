"""Bring a database to the schema of this version; migrations are only ever added."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from msgspec import Struct

from sortie.model import StoreError
from sortie.store.database import statements
from sortie.store.sqlite_database import SqliteDatabase

APPLICATION_ID = int.from_bytes(b"Sort")
"""Stands in the file's header, so that no other program's database is taken for ours."""


class Migration(Struct, frozen=True, kw_only=True):
    """A script that leads from the schema ``version - 1`` to ``version``."""

    version: int
    script: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Return the migrations of this version, ``migrations/NNNN_*.sql``, from 1 without a gap."""
    folder = files("sortie.store").joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1)), names
    return tuple(
        Migration(version=number, script=folder.joinpath(name).read_text(encoding="utf-8"))
        for number, name in enumerate(names, start=1)
    )


def migrate(database: SqliteDatabase, steps: Sequence[Migration]) -> None:
    """Apply the steps that a database lacks, all of them or none.

    Raises StoreError as ``schema_version`` does.
    """
    if schema_version(database, steps) == len(steps):
        return
    with database.transaction():
        for step in steps[schema_version(database, steps) :]:
            for statement in statements(step.script):
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {step.version}")


def require_schema(database: SqliteDatabase, steps: Sequence[Migration], oldest: int) -> None:
    """Raise StoreError unless a database has the schema ``oldest``, this version's, or one between.

    For readers, which change nothing; ``oldest`` is the first schema with what they read.
    """
    version = schema_version(database, steps)
    if version < oldest:
        raise StoreError(
            f"cannot read the database {database.name}: its schema {version} is older than this "
            f"version's {len(steps)}; start `sortie run` once to bring it up to date"
        )


def schema_version(database: SqliteDatabase, steps: Sequence[Migration]) -> int:
    """Return a database's schema, 0 where it is empty; changes nothing.

    Raises StoreError for a database of a newer version or of another program.
    """
    # One statement, so that another process's migration cannot come in between.
    header = database.row("identify")
    version = int(header["version"])
    ours = header["owner"] == APPLICATION_ID if version else header["tables"] == 0
    if not ours:
        raise StoreError(
            f"cannot use the database {database.name}: it belongs to another program; "
            "name another file with db_path"
        )
    if version > len(steps):
        raise StoreError(
            f"cannot use the database {database.name}: its schema {version} was made by a newer "
            f"version of Sortie, this one knows {len(steps)}; install the newer version, or name "
            "another file with db_path"
        )
    return version
