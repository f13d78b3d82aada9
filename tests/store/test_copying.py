"""Rows go from a file to a server and back whole, or not at all; an issue can be forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from sortie.model import HoldReason, IssueId, ProcessIdentity, RunId, StoreError
from sortie.scheduler import records as rec
from sortie.store.copying import TABLES, copy_rows
from sortie.store.database import Database
from sortie.store.database_file import open_database
from sortie.store.identity import begin_life, read_identity
from sortie.store.postgres import open_postgres
from sortie.store.postgres_address import parse_address
from sortie.store.purging import purge_issue
from sortie.store.record_reader import read_days, read_recovered, read_runs, read_totals
from sortie.store.record_writer import write
from tests.store.postgres_server import PostgresServer
from tests.store.records import (
    FULL_ISSUE,
    T0,
    A,
    B,
    C,
    begin,
    end,
    retry,
    turn,
    workspace,
)

Open = Callable[[str], Database]


@pytest.fixture
def opened(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[Callable[[str], Database]]:
    """Open an empty database of a kind."""
    with ExitStack() as stack:

        def make(kind: str) -> Database:
            if kind == "file":
                name = f"{len(list(tmp_path.iterdir()))}.db"
                return stack.enter_context(closing(open_database(str(tmp_path / name), 5.0)))
            address = parse_address(postgres_server.url, postgres_server.schema())
            return stack.enter_context(closing(open_postgres(address)))

        yield make


def fill(database: Database) -> None:
    """Write of everything something, with texts that no database takes as they are."""
    comments = [
        rec.RecordComment(run_id=RunId(f"c{n}"), issue=A, lifecycle="failure", body=f"b{n}")
        for n in (2, 1, 3)
    ]
    write(database, [begin("r1", FULL_ISSUE), workspace("r1", FULL_ISSUE)], T0, 0)
    write(database, [turn("r1", 2, FULL_ISSUE), end("r1")], T0 + 5, 0)
    write(database, [begin("r2", B), turn("r2", 1, B), end("r2")], T0 + 9, 0)
    write(database, [retry(B), *comments, rec.RecordPause(paused=True)], T0 + 9, 0)
    held = rec.RecordHold(issue=C, reason=HoldReason.OPERATOR, detail="nul \0, lone \ud800")
    rules: list[rec.Record] = [
        rec.RecordRule(issue_id=IssueId("i\0"), rule="docs"),
        rec.RecordCrash(issue=A),
    ]
    write(database, [held, *rules], T0 + 9, 0)
    with database.forgettable_transaction():
        database.change("note_sighting", issue_id="i", digest="d", at=T0)


def whole(database: Database) -> object:
    """All that can be read of a database."""
    return (
        read_recovered(database),
        read_runs(database, None, 100, None),
        read_totals(database),
        read_days(database, 10),
        [list(database.every_row(table, order)) for table, order in _comparable().items()],
    )


def _comparable() -> dict[str, str]:
    return {table: order for table, order in TABLES.items() if table != "comments_due"}


def test_no_table_is_forgotten(opened: Open) -> None:
    """Whatever table a migration adds is copied."""
    file = opened("file")
    schema = file._connection.execute(  # type: ignore[attr-defined]
        "SELECT name FROM sqlite_schema WHERE type = 'table'"
    )

    assert {row["name"] for row in schema} == {*TABLES, "identity"}


@pytest.mark.parametrize("there", ["server", "file"])
def test_rows_that_are_copied_there_and_back_are_the_same(opened: Open, there: str) -> None:
    """So are the sums, and what comes behind is numbered on."""
    source, middle, last = opened("file"), opened(there), opened("file")
    fill(source)
    before = whole(source)

    counts = copy_rows(source, middle)
    in_between = whole(middle)
    copy_rows(middle, last)
    write(last, [begin("r3", A)], T0 + 20, 0)
    write(
        middle,
        [
            begin("r3", A),
            rec.RecordComment(run_id=RunId("c9"), issue=A, lifecycle="failure", body="last"),
        ],
        T0 + 20,
        0,
    )

    assert in_between == before
    assert (counts["runs"], counts["comments_due"]) == (2, 3)
    assert [c.body for c in read_recovered(middle).comments] == ["b2", "b1", "b3", "last"]
    assert [c.body for c in read_recovered(last).comments] == ["b2", "b1", "b3"]
    for database in (middle, last):
        assert [row.run_id for row in read_runs(database, None, 9, None)] == ["r3", "r2", "r1"]
        assert read_totals(database).runs == 3


def test_the_id_goes_with_the_rows(opened: Open) -> None:
    """What the former daemon has left is found by the next one, and by no other."""
    source, target = opened("file"), opened("server")
    process = ProcessIdentity(pid=5, started_at=1.0)
    begin_life(source, process=process, database_id="ours")

    copy_rows(source, target)

    moved, left = read_identity(target), read_identity(source)
    assert (moved.id, moved.is_copy, moved.daemon) == ("ours", False, None)
    assert left.id != "ours"


def test_a_source_with_runs_under_way_is_refused(opened: Open) -> None:
    """Its processes may live, and only its own daemon finds them."""
    source, target = opened("file"), opened("server")
    write(source, [begin("r1")], T0, 0)

    with pytest.raises(StoreError, match="1 runs are recorded as under way"):
        copy_rows(source, target)


def test_a_target_with_rows_is_refused(opened: Open) -> None:
    """Nothing is mixed, and nothing written over."""
    source, target = opened("file"), opened("server")
    write(target, [retry(A)], T0, 0)

    with pytest.raises(StoreError, match="it has rows already"):
        copy_rows(source, target)

    assert len(read_recovered(target).retries) == 1


@pytest.mark.parametrize("kind", ["server", "file"])
def test_a_copy_that_is_not_whole_is_undone(
    opened: Open, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that is lost on the way is noticed by its count."""
    source, target = opened("file"), opened(kind)
    fill(source)
    every = source.every_row
    monkeypatch.setattr(source, "every_row", lambda table, order: list(every(table, order))[1:])

    with pytest.raises(StoreError, match="the copy of runs has 1 rows, and there are 2; nothing"):
        copy_rows(source, target)

    assert read_runs(target, None, 9, None) == ()
    assert read_totals(target).runs == 0
    assert read_identity(source).id != read_identity(target).id


@pytest.mark.parametrize("kind", ["server", "file"])
def test_an_issue_is_forgotten(opened: Open, kind: str) -> None:
    """Nothing of it is left in any table but the sums, and everything of others is."""
    database = opened(kind)
    fill(database)
    write(database, [begin("r3", A), workspace("r3", A), turn("r3", 1, A), end("r3")], T0 + 9, 0)
    delivered = rec.RecordComment(run_id=RunId("r3"), issue=A, lifecycle="failure", body="x")
    write(database, [delivered, retry(A), rec.RecordRule(issue_id=A.id, rule="x")], T0, 0)
    others = read_runs(database, None, 9, None)[1:]
    before = read_totals(database)

    purged = purge_issue(database, A.identifier)

    left = {
        table: [row for row in database.every_row(table, order) if A.id in row.values()]
        for table, order in TABLES.items()
    }
    assert purged.runs == ("r3",)
    assert len(purged.workspaces) == 1
    assert [table for table, rows in left.items() if rows] == []
    assert [c.run_id for c in read_recovered(database).comments] == ["c2", "c1", "c3"]
    assert read_runs(database, None, 9, None) == others
    assert read_totals(database) == before
    with pytest.raises(StoreError, match=f"nothing of {A.identifier} is recorded"):
        purge_issue(database, A.identifier)


def test_an_issue_with_a_run_under_way_is_not_forgotten(opened: Open) -> None:
    """Its processes are found by what is recorded."""
    database = opened("file")
    write(database, [begin("r1", A)], T0, 0)

    with pytest.raises(StoreError, match="is recorded as under way"):
        purge_issue(database, A.id)

    assert len(read_runs(database, None, 9, None)) == 1
