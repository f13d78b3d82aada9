"""``sortie logs``, beside what a daemon has written."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio

from sortie.daemon.locks import database_lock
from sortie.model import RunId
from sortie.scheduler.records import Record
from sortie.store.sqlite import open_store
from sortie.telemetry import facts
from tests.cli.conftest import Cli
from tests.cli.world import WORKFLOW
from tests.store.records import an_issue, begin, end
from tests.telemetry.transcripts.rig import Rig

OLD = RunId("00000000-2222-3333-4444-555555555555")
NEW = RunId("11111111-2222-3333-4444-555555555555")
A = an_issue("A-1")
T = 1_700_000_000.0

NEWEST = """\
2023-11-14 22:13:20Z   - run        run began: DEMO-1 (To Do): Mend the fence; \
attempt 0, kiro on local
2023-11-14 22:13:20Z   1 turn       turn 1 of 3 began
2023-11-14 22:13:20Z   1 output     a [bold]\ttab \ufffd[31m \\u202e
2023-11-14 22:13:20Z   1 output
2023-11-14 22:13:20Z   1 output     last
2023-11-14 22:13:20Z   - run        run succeeded after 5.5s
"""


def record(here: Path, *records: Record) -> None:
    """Commit records to the database of the workflow."""

    async def commit() -> None:
        async with open_store(str(here / ".sortie.db")) as store:
            await store.commit(records, T)

    trio.run(commit)


@pytest.fixture(autouse=True)
def _workflow(here: Path) -> None:
    (here / "WORKFLOW.md").write_text(WORKFLOW)


@pytest.fixture
def rig(here: Path) -> Rig:
    return Rig(here)


def write(rig: Rig, run_id: RunId) -> None:
    """Have written what was said of a run."""
    trio.run(rig.writer.page, run_id, 0, 1)


@pytest.fixture
def two_runs(here: Path, rig: Rig) -> None:
    """Two runs of one issue that are over."""
    record(here, begin(OLD, A), end(OLD), begin(NEW, A), end(NEW))
    rig.begin(OLD)
    rig.end(OLD)
    rig.begin(NEW)
    rig.sink(facts.TurnBegan(run_id=NEW, turn=1, max_turns=3))
    rig.say("a [bold]\ttab \x1b[31m \u202e\n\nlast", NEW)
    rig.sink._open[NEW].turn = None
    rig.end(NEW)
    write(rig, OLD)
    write(rig, NEW)


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize(
    "more", [(), ("--follow",), ("-f",), ("--run", NEW), ("--db", ".sortie.db")]
)
def test_people_see_the_lines_of_the_newest_run(cli: Cli, more: tuple[str, ...]) -> None:
    """Time, turn, kind and text, in which nothing acts on the terminal; what is over is not waited
    for."""
    ran = cli("logs", "A-1", *more)

    assert (ran.code, ran.out, ran.err) == (0, NEWEST, "")


@pytest.mark.usefixtures("two_runs")
def test_programs_get_an_object_a_line(cli: Cli) -> None:
    """With the run's id, and unknown is null."""
    ran = cli("logs", "A-1", "--run", OLD, "--format", "json")

    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["line"] for line in lines] == [1, 2]
    assert lines[1] == {
        "run_id": OLD,
        "line": 2,
        "at": "2023-11-14T22:13:20.000000Z",
        "turn": None,
        "kind": "run",
        "text": "run succeeded after 5.5s",
        "role": None,
    }


@pytest.mark.usefixtures("two_runs")
def test_an_issue_can_be_named_by_its_id(cli: Cli) -> None:
    """As for every command."""
    assert cli("logs", A.id).out == NEWEST


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize(
    "arguments", [["A-1", "--follow"], ["A-1", "--run", NEW], [A.id], [A.id, "--run", NEW]]
)
def test_of_the_history_the_one_run_is_read(cli: Cli, here: Path, arguments: list[str]) -> None:
    """Another run that cannot be read is not noticed, also while a daemon may write more."""
    with closing(sqlite3.connect(here / ".sortie.db")) as connection, connection:
        connection.execute("UPDATE runs SET status = 'nonsense' WHERE run_id = ?", (OLD,))
    with database_lock(str(here / ".sortie.db")) as lock:
        lock.ensure()
        ran = cli("logs", *arguments)

    assert (ran.code, ran.out, ran.err) == (0, NEWEST, "")


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["NOPE"], "no run of NOPE is recorded"),
        (["A-1", "--run", "../x"], "A-1 has no run ../x"),
        (["NOPE", "--run", NEW], f"NOPE has no run {NEW}"),
        (["A-1", "--db", "other.db"], "there is no database"),
    ],
)
def test_what_is_not_there_is_said(cli: Cli, arguments: list[str], said: str) -> None:
    """In one line, with exit 1."""
    ran = cli("logs", *arguments)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"sortie: {said}")
    assert ran.err.count("\n") == 1


@pytest.mark.usefixtures("two_runs")
def test_a_forgotten_transcript_is_said(cli: Cli, rig: Rig) -> None:
    """A run that is recorded may have none any more."""
    rig.file(NEW).unlink()

    ran = cli("logs", "A-1", "--follow")

    assert ran.code == 1
    assert ran.err.startswith(f"sortie: there is no transcript of run {NEW}, which began 20")


@pytest.mark.usefixtures("two_runs")
def test_damage_is_said(cli: Cli, rig: Rig) -> None:
    """What can be read is shown, and then what is wrong with the rest."""
    os.truncate(rig.file(NEW), rig.file(NEW).stat().st_size - 3)
    with rig.file(OLD).open("ab") as file:
        file.write(b"more")

    ran, other = cli("logs", "A-1"), cli("logs", "A-1", "--run", OLD)

    assert (ran.code, ran.out) == (0, "")
    assert "a crash has cut them short" in ran.err
    assert other.out.count("\n") == 2
    assert "a crash has cut them short" in other.err


def test_a_run_under_way_is_shown_as_far_as_it_is_written(cli: Cli, here: Path, rig: Rig) -> None:
    """While its daemon lives more may come; once that is gone the end is missing."""
    record(here, begin(NEW, A))
    with database_lock(str(here / ".sortie.db")) as lock:
        lock.ensure()
        nothing = cli("logs", "A-1")
        rig.begin(NEW)
        write(rig, NEW)
        live = cli("logs", "A-1")
    (here / ".sortie.db.lock").unlink()  # its holder is this very process, which lives
    dead = cli("logs", "A-1", "--follow")

    assert (nothing.code, nothing.out) == (0, "")
    assert [ran.out.count("\n") for ran in (live, dead)] == [1, 1]
    assert "the run is under way" in live.err
    assert "the end is missing" in dead.err
