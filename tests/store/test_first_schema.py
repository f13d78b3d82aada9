"""What the first version wrote is there in this one, whatever happens on the way."""

from __future__ import annotations

import signal
import sqlite3
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from sortie.model import IssueId, KnownWorkspace, RunId, RunStatus, Sighting
from sortie.scheduler.records import ForgetWorkspace, RecordCrash, RecordWorkspace
from sortie.store import StoredCrash
from sortie.store.database import statements
from sortie.store.readonly import read_history
from sortie.store.schema_versions import Migration, migrate, migrations
from sortie.store.sqlite import open_store
from tests.store.first_schema import (
    AGAIN,
    HISTORY,
    MIGRATED,
    ODD,
    TOTALS,
    UNDER_WAY,
    WAITING,
    first_schema,
)
from tests.store.processes import python
from tests.store.records import T0, A, end, moment
from tests.store.test_schema_versions import a_database, dump

FIRST, SECOND = migrations()[:2]
STATEMENTS = tuple(statements(SECOND.script))

DYING = """
import os, signal, sys
from sortie.store.sqlite_database import SqliteDatabase
from sortie.store.database_file import open_database

execute, left = SqliteDatabase.execute, int(sys.argv[2])

def execute_or_die(database, statement):
    global left
    execute(database, statement)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

SqliteDatabase.execute = execute_or_die
open_database(sys.argv[1], 5.0)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a database of the first schema is."""
    first_schema(tmp_path / "sortie.db")
    return tmp_path / "sortie.db"


def tables(connection: sqlite3.Connection) -> dict[str, str]:
    """The text of all that a schema declares, by name."""
    found = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return dict(found.fetchall())


def test_the_first_migration_is_what_it_was(place: Path, tmp_path: Path) -> None:
    """A database made anew by the first step has the schema that the first version wrote."""
    database, _ = a_database(tmp_path / "new.db")

    migrate(database, [FIRST])

    assert dump(tmp_path / "new.db")[0] == dump(place)[0] == 1
    assert tables(sqlite3.connect(tmp_path / "new.db")) == tables(sqlite3.connect(place))


async def test_all_that_the_first_version_wrote_is_still_there(place: Path) -> None:
    """Runs, totals, waits with what is left of them, holds, pause, sessions, workspaces and
    sightings are as they were; a directory of two issues is that of the newer run's."""
    async with open_store(str(place)) as store:
        recovered = await store.recover()
        history, totals = await store.history(), await store.totals()
        seen = await store.sight({A.id: "two", ODD.id: "one"}, T0 + 1000)

    assert recovered == MIGRATED
    assert tuple(history) == HISTORY
    assert totals == TOTALS
    assert seen == {
        A.id: Sighting(first_seen=moment(T0), changed_at=moment(T0 + 50)),
        ODD.id: Sighting(first_seen=moment(T0), changed_at=moment(T0)),
    }
    assert dump(place)[0] == len(migrations())


async def test_a_directory_without_a_run_is_kept_unless_another_issue_ran_there(
    place: Path,
) -> None:
    """Whatever the history lost, each directory stays known once, with the same owner each time."""
    connection = sqlite3.connect(place)
    connection.executemany(
        "INSERT INTO workspaces VALUES (?, 'local', ?, ?)",
        [("x", "X", "/w/X"), ("z", "Z", "/w/X"), ("y", "Y", "/w/X"), ("z2", "A-1", "/w/A-1")],
    )
    connection.commit()
    connection.close()

    async with open_store(str(place)) as store:
        workspaces = (await store.recover()).workspaces

    lost = KnownWorkspace(issue_id=IssueId("z"), identifier="Z", host="local", path="/w/X")
    assert set(workspaces) == {*MIGRATED.workspaces, lost}
    assert len(workspaces) == len(MIGRATED.workspaces) + 1


async def test_an_old_database_takes_new_records(place: Path) -> None:
    """The run under way ends when it was last heard of, crashes are counted, and an issue may have
    a second directory on a host."""
    moved = KnownWorkspace(
        issue_id=UNDER_WAY.id, identifier="R-2", host="me@box:22", path="/srv/R-2"
    )
    async with open_store(str(place)) as store:
        await store.recover()

        await store.commit([RecordWorkspace(run_id=RunId("r9"), workspace=moved)], T0 + 172)
        await store.commit(
            [
                end("r9", RunStatus.INTERRUPTED),
                RecordCrash(issue=WAITING),
                RecordCrash(issue=WAITING),
                ForgetWorkspace(host="local", path="/w/A-1"),
            ],
            T0 + 1000,
        )
        recovered, totals = await store.recover(), await store.totals()

    kept = [known for known in MIGRATED.workspaces if known.issue_id != AGAIN.id]
    kept.insert(kept.index(next(k for k in kept if k.issue_id == UNDER_WAY.id)) + 1, moved)
    assert recovered == replace(
        MIGRATED,
        unfinished=(),
        workspaces=tuple(kept),
        crashes=(StoredCrash(issue=WAITING, times=2),),
    )
    assert totals == replace(TOTALS, seconds_running=92.0)


@pytest.mark.parametrize("done", range(len(STATEMENTS) + 1))
async def test_a_migration_that_fails_leaves_the_file_as_it_was(place: Path, done: int) -> None:
    """After an error behind any statement all is as the first version wrote it, and the next
    attempt succeeds."""
    broken = Migration(
        version=2, script="\n".join([*STATEMENTS[:done], "INSERT INTO missing VALUES (1);"])
    )
    before = dump(place)
    database, _ = a_database(place)

    with pytest.raises(sqlite3.OperationalError, match="missing"):
        migrate(database, [FIRST, broken])
    database.close()
    after = dump(place)
    async with open_store(str(place)) as store:
        recovered = await store.recover()

    assert after == before
    assert recovered == MIGRATED


@pytest.mark.parametrize("done", range(1, len(STATEMENTS) + 3))  # two more set the header
async def test_a_migration_that_is_killed_leaves_the_file_as_it_was(place: Path, done: int) -> None:
    """After SIGKILL behind any statement all is as the first version wrote it, and the next start
    succeeds."""
    before = dump(place)
    with trio.fail_after(30):
        async with python(DYING, str(place), str(done)) as process:
            status = await process.wait()

    after = dump(place)
    async with open_store(str(place)) as store:
        recovered = await store.recover()

    assert status == -signal.SIGKILL
    assert after == before
    assert recovered == MIGRATED


async def test_history_of_the_first_version_is_read_as_it_is(place: Path) -> None:
    """Who upgraded sees all runs before a daemon ran, in pages too, and the file stays the same."""
    before = place.read_bytes()

    found = read_history(str(place))
    page = read_history(str(place), issue="A-1", limit=2, before=RunId("r8"))

    assert tuple(found) == HISTORY
    assert tuple(page) == HISTORY[-2:]
    assert [path.name for path in place.parent.iterdir()] == ["sortie.db"]
    assert place.read_bytes() == before
