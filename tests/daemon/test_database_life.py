"""Whose a database is that a daemon begins to work with, and whether it is whole."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from sortie.daemon.database_life import begin_life, refuse_lost_rows
from sortie.daemon.locks import database_lock
from sortie.model import StoreError
from sortie.resources.process_identity import identity_of
from sortie.store.identity import DatabaseIdentity
from sortie.store.sqlite import open_store
from tests.store.first_schema import first_schema


async def life(database: Path) -> DatabaseIdentity:
    """Begin a life with a database and end it in good order."""
    path = str(database)
    with database_lock(path) as lock:
        lock.ensure()
        refuse_lost_rows(lock, path)
        async with open_store(path) as store:
            return await begin_life(store, lock, path)


@contextmanager
def last_daemon(database: Path) -> Iterator[int]:
    """Have a process that lives be on record as the last daemon of a database."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        daemon = identity_of(process.pid)
        connection = sqlite3.connect(database)
        values = (daemon.pid, daemon.started_at)
        connection.execute("UPDATE identity SET pid = ?, started_at = ?", values)
        connection.commit()
        connection.close()
        yield process.pid
        process.kill()


KILLED = """
import os, sys, trio
from sortie.daemon.database_life import begin_life
from sortie.daemon.locks import database_lock
from sortie.store.sqlite import open_store

async def main(path):
    with database_lock(path) as lock:
        lock.ensure()
        async with open_store(path) as store:
            lock.ensure()
            await begin_life(store, lock, path)
            os._exit(0)

trio.run(main, sys.argv[1])
"""


async def killed_life(database: Path) -> None:
    """Have a daemon begin its life with a database, and be killed then."""
    await trio.run_process([sys.executable, "-c", KILLED, str(database)])


async def test_a_database_keeps_its_id(tmp_path: Path) -> None:
    """By it the next life knows what the last one has left."""
    first, second = [await life(tmp_path / "a.db") for _ in range(2)]

    assert first.id == second.id
    assert not first.path_named


async def test_a_copy_has_an_id_of_its_own(tmp_path: Path) -> None:
    """Its daemon must not take for its own what the original's daemon runs."""
    original = await life(tmp_path / "a.db")
    shutil.copy(tmp_path / "a.db", tmp_path / "copy.db")

    copies = [await life(tmp_path / "copy.db") for _ in range(2)]
    again = await life(tmp_path / "a.db")

    assert copies[0].id == copies[1].id != original.id
    assert again.id == original.id


async def test_a_copy_is_refused_while_the_daemon_of_the_original_lives(tmp_path: Path) -> None:
    """The runs that are under way in it are that daemon's."""
    await life(tmp_path / "a.db")
    with last_daemon(tmp_path / "a.db") as pid:
        shutil.copy(tmp_path / "a.db", tmp_path / "copy.db")

        with pytest.raises(StoreError, match=f"is a copy of one .* pid {pid}"):
            await life(tmp_path / "copy.db")

    await life(tmp_path / "copy.db")


async def test_a_database_whose_wal_was_removed_is_refused(tmp_path: Path) -> None:
    """Its rows were there and nowhere else; whoever starts it is told what to do, each time."""
    database = tmp_path / "a.db"
    await killed_life(database)
    (tmp_path / "a.db-wal").unlink()

    for _ in range(2):
        with pytest.raises(StoreError, match=r"lacks its newest rows: .*a\.db-wal") as refused:
            await life(database)
    (tmp_path / "a.db.lock").unlink()
    await life(database)

    assert f"remove {database}.lock and start again" in str(refused.value)


async def test_a_crash_alone_is_no_loss(tmp_path: Path) -> None:
    """The -wal is there; nor is it one where another program has moved its rows."""
    database = tmp_path / "a.db"
    await killed_life(database)
    first = await life(database)
    await killed_life(database)
    connection = sqlite3.connect(database)
    connection.execute("SELECT count(*) FROM runs").fetchone()
    connection.close()
    left = (tmp_path / "a.db-wal").exists()
    second = await life(database)

    assert not left
    assert first.id == second.id


async def test_what_is_put_in_its_place_is_taken_as_it_is(tmp_path: Path) -> None:
    """A backup has fewer rows on purpose, and so has a database that is begun anew."""
    database, backup = tmp_path / "a.db", tmp_path / "backup.db"
    original = await life(database)
    shutil.copy(database, backup)
    await killed_life(database)

    for name in ("a.db", "a.db-wal", "a.db-shm"):
        (tmp_path / name).unlink()
    shutil.copy(backup, database)
    await life(database)
    await killed_life(database)
    for name in ("a.db", "a.db-wal", "a.db-shm"):
        (tmp_path / name).unlink()
    anew = await life(database)

    assert anew.id != original.id


async def test_a_database_of_an_earlier_version_is_known_as_such(tmp_path: Path) -> None:
    """Its daemon named what it left by the path, which is looked for until that is done."""
    first_schema(tmp_path / "a.db")

    begun = await life(tmp_path / "a.db")
    async with open_store(str(tmp_path / "a.db")) as store:
        await store.forget_path_name()
    after = await life(tmp_path / "a.db")

    assert (begun.path_named, after.path_named) == (True, False)
