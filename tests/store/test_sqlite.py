"""What only a store on disk can prove: rows outlive processes, faults and full disks."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from sortie.model import HoldReason, RunStatus, StoreError
from sortie.scheduler.records import RecordHold, RecordPause
from sortie.store import Recovered, Totals
from sortie.store.database import Database
from sortie.store.database_file import open_database
from sortie.store.database_store import DatabaseStore
from sortie.store.database_thread import DatabaseThread, open_thread
from sortie.store.sqlite import open_store
from sortie.store.sqlite_database import SqliteDatabase
from tests.store.processes import output_line, python
from tests.store.records import (
    FULL_ISSUE,
    T0,
    A,
    B,
    an_issue,
    begin,
    end,
    retry,
    turn,
    workspace,
)

CRASHING = """
import sys, trio
from sortie.store.sqlite import open_store
from tests.store.records import *

async def main():
    async with open_store(sys.argv[1]) as store:
        await store.commit([begin("r1"), workspace("r1"), turn("r1", 2), retry(B)], T0)
        print("committed", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""

FILLING = """
import os, resource, sys, trio
from sortie.model import StoreError
from sortie.scheduler.records import RecordPause
from sortie.store.sqlite import open_store
from tests.store.records import *

def allow(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main():
    path = sys.argv[1]
    async with open_store(path) as store:
        await store.commit([begin("r1")], T0)
        allow(os.path.getsize(path + "-wal") + 5000)
        try:
            await store.commit([end("r1"), begin("r2", FULL_ISSUE), begin("r3", B)], T0)
        except StoreError as error:
            print(error, flush=True)
        allow(os.path.getsize(path + "-wal"))
        try:
            for turn in range(20):
                await store.commit([RecordPause(paused=turn % 2 == 0)], T0)
        except StoreError as error:
            print(error, flush=True)
        allow(resource.RLIM_INFINITY)
        print([row.run_id for row in await store.history()], flush=True)
        await store.check()
        await store.commit([end("r1"), begin("r2", FULL_ISSUE)], T0 + 1)
        print([row.run_id for row in await store.history()], flush=True)

trio.run(main)
"""


class Slow:
    """A job that keeps the thread busy until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def __call__(self, _database: Database) -> None:
        """Wait; ten seconds at most, so that a failing test ends."""
        self.go.wait(10)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the database is."""
    return tmp_path / "sortie.db"


@pytest.fixture
async def thread(place: Path) -> AsyncIterator[DatabaseThread]:
    """The thread of an empty database."""
    async with open_thread(partial(open_database, str(place), 5.0)) as opened:
        yield opened


def execute(statement: str) -> partial[None]:
    """A job that runs a statement of the test's own."""
    return partial(_execute, statement)


def _execute(statement: str, database: Database) -> None:
    assert isinstance(database, SqliteDatabase)
    database.execute(statement)


async def test_rows_outlive_the_store(place: Path) -> None:
    """All that was committed is there when the file is opened again."""
    async with open_store(str(place)) as store:
        await store.commit(
            [begin("r1", FULL_ISSUE), workspace("r1", FULL_ISSUE), turn("r1", 1, FULL_ISSUE)], T0
        )
        await store.commit([retry(A), RecordPause(paused=True)], T0)
        await store.commit([RecordHold(issue=B, reason=HoldReason.OPERATOR, detail="x")], T0)
        before = (await store.recover(), await store.history(), await store.totals())
        seen = await store.sight({"a": "1"}, T0)

    async with open_store(str(place)) as store:
        after = (await store.recover(), await store.history(), await store.totals())
        seen_again = await store.sight({"a": "1"}, T0 + 1)

    assert before[0] != Recovered()
    assert after == before
    assert seen_again == seen


async def test_a_commit_that_returned_outlives_a_killed_process(place: Path) -> None:
    """After SIGKILL the rows are there, and the run is unfinished."""
    with trio.fail_after(30):
        async with python(CRASHING, str(place)) as process:
            assert await output_line(process) == "committed"
            process.kill()
            await process.wait()

    async with open_store(str(place)) as store:
        recovered = await store.recover()
        await store.commit([end("r1", RunStatus.INTERRUPTED)], T0 + 1000)
        totals = await store.totals()

    assert [(run.run_id, run.turns) for run in recovered.unfinished] == [("r1", 2)]
    assert [wait.issue for wait in recovered.retries] == [B]
    assert recovered.sessions == {A.id: 1}
    assert totals == Totals(runs=1, turns=2, credits=None, tokens=None, seconds_running=0.0)


async def test_commits_are_synced_to_the_disk(thread: DatabaseThread) -> None:
    """The connection runs with the settings that durability depends on."""

    def settings(database: Database) -> dict[str, object]:
        assert isinstance(database, SqliteDatabase)
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "fullfsync")
        connection = database._connection
        return {
            name: next(iter(connection.execute(f"PRAGMA {name}").fetchone().values()))
            for name in names
        }

    assert await thread.read(settings) == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 5000,
        "fullfsync": 1,
    }


async def test_a_full_disk_fails_the_commit_and_nothing_else(place: Path) -> None:
    """A write past the limit of file sizes is a StoreError that leaves the rows as they were;
    with room again the same store goes on."""
    with trio.fail_after(30):
        async with python(FILLING, str(place)) as process:
            lines = [await output_line(process) for _ in range(4)]

    assert f"cannot write to the database {place}: reading or writing failed" in lines[0]
    assert f"cannot write to the database {place}: reading or writing failed" in lines[1]
    assert lines[2:] == ["['r1']", "['r2', 'r1']"]


async def test_an_idle_daemon_leaves_the_disk_alone(place: Path) -> None:
    """A check on a healthy disk changes no byte of the database's files; after a failed commit one
    is made, and once that has succeeded none any more."""
    async with open_store(str(place)) as store:
        await store.commit([begin("r1")], T0)
        written = _content(place)
        for _ in range(50):
            await store.check()
        idle = _content(place)
        other = sqlite3.connect(place, isolation_level=None, timeout=0)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError):
            await store.commit([end("r1")], T0)
        other.execute("ROLLBACK")
        other.close()
        before_proof = _content(place)
        await store.check()
        proven = _content(place)
        await store.check()
        after = _content(place)

    assert idle == written
    assert proven != before_proof
    assert after == proven


def _content(place: Path) -> tuple[bytes, bytes]:
    return place.read_bytes(), place.with_name(f"{place.name}-wal").read_bytes()


async def test_a_locked_database_fails_the_check_after_the_busy_timeout(place: Path) -> None:
    """Another process's lock is waited for, then told; when it is gone, all is well."""
    async with open_store(str(place), busy_timeout=0.05) as store:
        other = sqlite3.connect(place, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreError, match=f"{place}: another process keeps it locked"):
            await store.check()
        with pytest.raises(StoreError, match="another process keeps it locked"):
            await store.commit([begin("r1")], T0)
        other.execute("ROLLBACK")
        await store.check()
        other.close()
        rows = await store.history()

    assert list(rows) == []


@pytest.mark.parametrize("replaced", [True, False])
async def test_a_database_that_was_moved_away_fails_the_check(place: Path, replaced: bool) -> None:
    """Rows that go to a file nobody will find again are noticed."""
    async with open_store(str(place)) as store:
        await store.check()
        place.rename(place.with_name("old.db"))
        if replaced:
            place.touch()

        with pytest.raises(StoreError, match=f"the database {place}.*(replaced|No such file)"):
            await store.check()


async def test_a_commit_under_way_shields_its_caller(thread: DatabaseThread) -> None:
    """Cancelled while it waits, a commit is made, and its caller goes on only then."""
    store, slow = DatabaseStore(thread), Slow()
    finished = trio.Event()

    async def commit(scope: trio.CancelScope) -> None:
        with scope:
            await store.commit([begin("r1")], T0)
            finished.set()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(thread.change, slow)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(commit, scope)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
            early = finished.is_set()
            slow.go.set()

    assert not early
    assert finished.is_set()
    assert [row.run_id for row in await store.history()] == ["r1"]


async def test_a_cancelled_reader_leaves_at_once(thread: DatabaseThread) -> None:
    """Who only reads need not wait for a busy disk."""
    store, slow = DatabaseStore(thread), Slow()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(thread.change, slow)
            await trio.testing.wait_all_tasks_blocked()
            with trio.move_on_after(0.01) as scope:
                await store.history()
            still_busy = not slow.go.is_set()
            slow.go.set()

    assert scope.cancelled_caught
    assert still_busy
    assert list(await store.history()) == []


async def test_leaving_waits_for_what_was_handed_over(place: Path) -> None:
    """A store closed while commits wait in line makes them first, and answers their callers."""
    opening = partial(open_database, str(place), 5.0)
    slow, answered = Slow(), []

    async def commit(store: DatabaseStore, number: int) -> None:
        await store.commit([begin(f"r{number}", an_issue(f"N-{number}"))], T0)
        answered.append(number)

    async def let_go_when_all_wait() -> None:
        await trio.testing.wait_all_tasks_blocked()
        slow.go.set()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery, open_thread(opening) as thread:
            store = DatabaseStore(thread)
            nursery.start_soon(thread.change, slow)
            await trio.testing.wait_all_tasks_blocked()
            for number in range(5):
                nursery.start_soon(commit, store, number)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(let_go_when_all_wait)
    async with open_store(str(place)) as store_again:
        rows = await store_again.history()

    assert sorted(answered) == [0, 1, 2, 3, 4]
    assert len(rows) == 5


async def test_a_closed_store_answers_with_an_error(place: Path) -> None:
    """Every method of a store that was left raises StoreError."""
    async with open_store(str(place)) as store:
        pass

    for method in (
        partial(store.commit, [begin("r1")], T0),
        store.recover,
        store.history,
        store.totals,
        partial(store.sight, {}, T0),
        store.check,
    ):
        with pytest.raises(StoreError, match=f"{place}: it is closed"):
            await method()


async def test_a_defect_in_a_job_is_its_callers_alone(thread: DatabaseThread) -> None:
    """An unexpected error reaches who asked, its transaction is undone, and the thread goes on."""
    store = DatabaseStore(thread)

    def defective(database: Database) -> None:
        with database.transaction():
            database.change("set_paused", paused=1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await thread.change(defective)
    await store.commit([begin("r1")], T0)

    assert not (await store.recover()).paused
    assert len(await store.history()) == 1


async def test_a_machine_without_a_free_thread_keeps_no_commit_waiting(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an open store writes, reads and closes with is there already."""

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with trio.fail_after(30):
        async with open_store(str(place)) as store:
            monkeypatch.setattr(threading.Thread, "start", refuse)
            await store.commit([begin("r1")], T0)
            rows = await store.history()

    assert [row.run_id for row in rows] == ["r1"]


async def test_issues_of_other_versions_are_read(thread: DatabaseThread) -> None:
    """Unknown fields are ignored, missing ones have their defaults."""
    store = DatabaseStore(thread)
    await store.commit([retry(A)], T0)
    text = '{"id": "id-A-1", "identifier": "A-1", "title": "t", "state": "s", "mood": ["good"]}'
    await thread.change(execute(f"UPDATE retries SET issue = '{text}'"))

    recovered = await store.recover()

    assert [wait.issue for wait in recovered.retries] == [an_issue("A-1", title="t", state="s")]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE retries SET kind = 'leap'",
        "UPDATE retries SET issue = '{'",
        "UPDATE retries SET issue = '{}'",
    ],
)
async def test_a_row_that_this_version_does_not_know_is_an_error(
    thread: DatabaseThread, place: Path, change: str
) -> None:
    """What cannot be understood is told, not guessed or dropped."""
    store = DatabaseStore(thread)
    await store.commit([retry(A)], T0)
    await thread.change(execute(change))

    with pytest.raises(StoreError, match=f"{place}: a row holds what this version does not know"):
        await store.recover()


async def test_an_unchanged_tracker_costs_no_write(place: Path) -> None:
    """Noting digests that are known already writes nothing."""
    digests = {f"id-{number}": "1" for number in range(50)}
    async with open_store(str(place)) as store:
        await store.sight(digests, T0)
        before = place.with_name("sortie.db-wal").read_bytes()

        await store.sight(digests, T0 + 30)

        assert place.with_name("sortie.db-wal").read_bytes() == before


def test_records_are_synchronized_whatever_was_written_before(place: Path) -> None:
    """A commit of records waits for the disk, also after a sighting, which does not, and after one
    that has failed."""
    database = open_database(str(place), 5.0)
    modes: list[int] = []

    def note_mode() -> None:
        row = database._connection.execute("PRAGMA synchronous").fetchone()
        modes.append(row["synchronous"])

    with database.forgettable_transaction():
        note_mode()
    with pytest.raises(RuntimeError), database.forgettable_transaction():
        raise RuntimeError
    with database.transaction():
        note_mode()
    database.close()

    assert modes == [1, 2]
