"""A place that cannot serve is refused with its path and a way out."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sortie.model import StoreError
from sortie.store.readonly import read_history
from sortie.store.sqlite import open_store
from tests.store.records import T0, begin


async def refusal(place: Path | str) -> str:
    """Return what a store says that will not open there."""
    with pytest.raises(StoreError) as caught:
        async with open_store(str(place)):
            pass
    return str(caught.value)


async def test_the_files_of_a_new_database_are_the_owners_alone(tmp_path: Path) -> None:
    """Database, -wal and -shm have mode 0600, whatever the umask allows."""
    before = os.umask(0)
    try:
        async with open_store(str(tmp_path / "sortie.db")) as store:
            await store.commit([begin("r1")], T0)
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    finally:
        os.umask(before)

    assert modes == {"sortie.db": 0o600, "sortie.db-wal": 0o600, "sortie.db-shm": 0o600}


async def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    """Nothing is made where the directory is not there."""
    place = tmp_path / "missing" / "sortie.db"

    said = await refusal(place)

    assert said == (
        f"cannot create the database {place}: No such file or directory; make its directory exist "
        "and be writable, or name another file with db_path"
    )
    assert not place.parent.exists()


async def test_a_directory_is_no_database(tmp_path: Path) -> None:
    """A directory in the database's place is left alone."""
    said = await refusal(tmp_path)

    assert said == (
        f"cannot open the database {tmp_path}: it is a directory; name a file with db_path"
    )


async def test_a_pipe_is_no_database(tmp_path: Path) -> None:
    """A FIFO is refused at once; nobody waits for its other end."""
    place = tmp_path / "sortie.db"
    os.mkfifo(place)

    said = await refusal(place)

    assert "not a regular file" in said


async def test_a_link_to_nothing_is_not_followed(tmp_path: Path) -> None:
    """No file is made behind a dangling link."""
    place = tmp_path / "sortie.db"
    place.symlink_to(tmp_path / "elsewhere.db")

    said = await refusal(place)

    assert f"{place}: No such file or directory; if it is a link" in said
    assert not (tmp_path / "elsewhere.db").exists()


async def test_a_path_with_a_null_is_refused() -> None:
    """A path that no system has is a plain error, for writers and readers."""
    said = await refusal("a\0b.db")

    assert "a path holds no null character" in said
    with pytest.raises(StoreError, match="a path holds no null character"):
        read_history("a\0b.db")


async def test_a_text_file_is_refused_and_kept(tmp_path: Path) -> None:
    """A file that is no database is not written over."""
    place = tmp_path / "notes.txt"
    place.write_text("Not a database.\n" * 100)

    said = await refusal(place)

    assert f"cannot open the database {place}: it is not a database; name another" in said
    assert place.read_text() == "Not a database.\n" * 100


async def test_a_damaged_database_is_refused_with_advice(tmp_path: Path) -> None:
    """Pages written over by something else are noticed, and the way to rescue is told."""
    place = tmp_path / "sortie.db"
    async with open_store(str(place)) as store:
        await store.commit([begin("r1")], T0)
    whole = place.read_bytes()
    place.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))

    said = await refusal(place)

    assert f"cannot open the database {place}: it is damaged; stop the daemon, keep a copy" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_directory_without_write_permission_is_refused(tmp_path: Path) -> None:
    """A place that this user may not write gives the path and the reason."""
    tmp_path.chmod(0o500)

    said = await refusal(tmp_path / "sortie.db")

    assert f"{tmp_path / 'sortie.db'}: Permission denied; make its directory" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_read_only_database_is_refused_at_the_start(tmp_path: Path) -> None:
    """A daemon does not start on a database that it cannot write."""
    place = tmp_path / "sortie.db"
    async with open_store(str(place)):
        pass
    place.chmod(0o400)

    said = await refusal(place)

    assert f"the database {place}: it is read-only; make the file" in said
