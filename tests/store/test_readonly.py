"""History is read beside a daemon, or without one, and no trace is left."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest
import trio

from sortie.model import RunId, StoreError
from sortie.store import UnknownRun
from sortie.store.readonly import read_history
from sortie.store.sqlite import open_store
from tests.store.processes import output_line, python
from tests.store.records import T0, A, B, an_issue, begin, end
from tests.store.test_sqlite import CRASHING


def traces(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """All that can be told from a directory's files."""
    return {
        path.name: (path.stat().st_mtime_ns, stat.S_IMODE(path.stat().st_mode), path.read_bytes())
        for path in directory.iterdir()
    }


async def three_runs(place: Path) -> None:
    """Fill a database with three runs and close it."""
    async with open_store(str(place)) as store:
        for number, issue in enumerate([A, B, A]):
            await store.commit([begin(f"r{number}", issue), end(f"r{number}")], T0 + number)


@pytest.mark.parametrize("name", ["sortie.db", "sor tie?mode=rwc#%41 ü.db", "\udcff.db"])
async def test_a_closed_database_is_read_without_a_trace(tmp_path: Path, name: str) -> None:
    """The rows are those of the store, and the directory is as it was."""
    place = tmp_path / name
    await three_runs(place)
    async with open_store(str(place)) as store:
        expected = [
            await store.history(),
            await store.history(limit=1, before=RunId("r2")),
            await store.history(issue="A-1"),
        ]
    before = traces(tmp_path)

    found = [
        read_history(str(place)),
        read_history(str(place), limit=1, before=RunId("r2")),
        read_history(str(place), issue="A-1"),
    ]

    assert found == expected
    assert traces(tmp_path) == before


async def test_an_open_database_shows_its_last_commit(tmp_path: Path) -> None:
    """A reader sees each commit of a running daemon, and makes no file."""
    place = tmp_path / "sortie.db"
    async with open_store(str(place)) as store:
        for number in range(5):
            await store.commit([begin(f"r{number}", an_issue(f"N-{number}"))], T0 + number)
            before = sorted(os.listdir(tmp_path))

            found = await trio.to_thread.run_sync(read_history, str(place))

            assert found == await store.history()
            assert len(found) == number + 1
            assert sorted(os.listdir(tmp_path)) == before


async def test_a_crashed_daemons_last_commit_is_read(tmp_path: Path) -> None:
    """Rows that a killed process left in the -wal file are there."""
    place = tmp_path / "sortie.db"
    with trio.fail_after(30):
        async with python(CRASHING, str(place)) as process:
            assert await output_line(process) == "committed"

    found = read_history(str(place))

    assert [row.run_id for row in found] == ["r1"]


async def test_a_writer_is_not_kept_waiting_by_a_reader(tmp_path: Path) -> None:
    """A connection in the middle of reading does not hold up a commit."""
    place = tmp_path / "sortie.db"
    async with open_store(str(place), busy_timeout=0.05) as store:
        await store.commit([begin("r1")], T0)
        reader = sqlite3.connect(f"file:{place}?mode=ro", uri=True, isolation_level=None)
        reader.execute("BEGIN")
        first = reader.execute("SELECT count(*) FROM runs").fetchone()

        await store.commit([end("r1"), begin("r2")], T0 + 1)

        again = reader.execute("SELECT count(*) FROM runs").fetchone()
        reader.close()

    assert first == again == (1,)


@pytest.mark.parametrize("name", ["missing.db", "missing/sortie.db"])
def test_a_missing_database_is_named_and_not_made(tmp_path: Path, name: str) -> None:
    """Nothing is created where nothing is, and the error tells which file was looked for."""
    with pytest.raises(StoreError, match=f"there is no database {tmp_path / name}: no daemon"):
        read_history(str(tmp_path / name))

    assert list(tmp_path.iterdir()) == []


async def test_only_schemas_with_runs_are_read(tmp_path: Path) -> None:
    """An empty, a newer and a foreign database are told apart, and none is changed."""
    empty, newer, foreign = tmp_path / "empty.db", tmp_path / "newer.db", tmp_path / "foreign.db"
    empty.touch()
    await three_runs(newer)
    for path, statement in (
        (newer, "PRAGMA user_version = 99"),
        (foreign, "CREATE TABLE theirs (a)"),
    ):
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.close()
    before = traces(tmp_path)

    with pytest.raises(StoreError, match=f"{empty}: its schema 0 is older"):
        read_history(str(empty))
    with pytest.raises(StoreError, match=f"{newer}: its schema 99 was made by a newer version"):
        read_history(str(newer))
    with pytest.raises(StoreError, match=f"{foreign}: it belongs to another program"):
        read_history(str(foreign))

    assert traces(tmp_path) == before


async def test_history_before_an_unknown_run_is_an_error(tmp_path: Path) -> None:
    """The page after a run that was never recorded does not exist."""
    await three_runs(tmp_path / "sortie.db")

    with pytest.raises(UnknownRun):
        read_history(str(tmp_path / "sortie.db"), before=RunId("r9"))
