"""``sortie history``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from sortie.cli.history import listing
from sortie.model import Activity, ErrorKind, RunId, RunStatus, Spending, Streak
from sortie.scheduler.records import Record, RecordImage
from sortie.store.readonly import read_history
from sortie.store.sqlite import open_store
from tests.cli.conftest import Cli
from tests.cli.world import WORKFLOW, Ran
from tests.store.records import activity, an_issue, begin, end, spending, turn, workspace

LISTING = """\
started                took  issue  attempt  status     turns  used          files  host
2023-11-14 22:14:50Z         B-2          0  running        0                       local
2023-11-14 22:14:40Z   0.5s  A-1          2  failed         0                       local
    turn_failed: the agent said \\x1b[31mno [bold]
2023-11-14 22:13:20Z  1m15s  A-1          0  succeeded      1  0.25 credits     2+  local
"""

A = an_issue("A-1")
DONE = Activity(
    model="large",
    files_modified=("src/a.py", "b.md"),
    files_omitted=True,
    tool_uses={"fs_write": 3},
)
HOSTILE = an_issue("[red]\x1b[2J{{ 7*7 }}", title="x")

T = 1_700_000_000.0
DIGEST = "0123456789abcdef" * 4


def record(here: Path, *rounds: tuple[float, list[Record]]) -> None:
    """Commit rounds of records to the database of the workflow."""

    async def commit() -> None:
        async with open_store(str(here / ".sortie.db")) as store:
            for at, records in rounds:
                await store.commit(records, at)

    trio.run(commit)


@pytest.fixture(autouse=True)
def _workflow(here: Path) -> None:
    (here / "WORKFLOW.md").write_text(WORKFLOW)


@pytest.fixture
def three_runs(here: Path) -> None:
    """A success, a failure and a run under way."""
    record(
        here,
        (T, [begin("r-1", A), workspace("r-1", A), turn("r-1", 1, A)]),
        (
            T + 75,
            [
                spending("r-1", Spending(credits=0.25)),
                activity("r-1", DONE),
                end("r-1", turns=1),
            ],
        ),
        (T + 80, [begin("r-2", A, streak=Streak(failures=2))]),
        (
            T + 80.5,
            [
                end(
                    "r-2",
                    RunStatus.FAILED,
                    error_kind=ErrorKind.TURN_FAILED,
                    error="the agent\nsaid \x1b[31mno [bold]",
                    turns=0,
                )
            ],
        ),
        (T + 90, [begin("r-3", an_issue("B-2"))]),
    )


def test_a_file_has_no_history_of_leaders(cli: Cli) -> None:
    """One daemon alone leads it; and what chooses runs does not choose leaders."""
    without, wrong = cli("history", "--leaders"), cli("history", "--leaders", "--issue", "A-1")

    assert (without.code, wrong.code) == (1, 2)
    assert "no store.url" in without.err


@pytest.mark.usefixtures("three_runs")
def test_people_see_a_line_for_each_run(cli: Cli) -> None:
    """Runs stand newest first, unknown is blank, and an error follows below its run."""
    assert cli("history") == Ran(code=0, out=LISTING, err="")


NARROW = """\
started                took  issue  status     turns  used          files
2023-11-14 22:14:50Z         B-2    running        0
2023-11-14 22:14:40Z   0.5s  A-1    failed         0
    attempt 2; turn_failed: the agent said \\x1b[31mno [bold]
2023-11-14 22:13:20Z  1m15s  A-1    succeeded      1  0.25 credits     2+
"""
NARROWER = """\
started                took  issue  status     turns
2023-11-14 22:14:50Z         B-2    running        0
2023-11-14 22:14:40Z   0.5s  A-1    failed         0
    attempt 2; turn_failed: the agent said \\x1b[31mno
    [bold]
2023-11-14 22:13:20Z  1m15s  A-1    succeeded      1
    files 2+, used 0.25 credits
"""


@pytest.mark.usefixtures("three_runs")
@pytest.mark.parametrize(("width", "shown"), [(100, LISTING), (80, NARROW), (55, NARROWER)])
def test_a_narrow_terminal_has_a_table_too(here: Path, width: int, shown: str) -> None:
    """Columns without room are told below their runs, where they say anything."""
    assert listing(read_history(str(here / ".sortie.db")), width) == shown


IN_CONTAINERS = """\
started                took  issue  attempt  status     turns  used  host   image
2023-11-14 22:13:30Z  10.0s  B-2          0  succeeded      0        local
2023-11-14 22:13:20Z  10.0s  A-1          0  succeeded      0        local  team/tools:7, sha256:0123456789ab
"""  # noqa: E501
WITHOUT_ROOM = """\
started                took  issue  attempt  status     turns  used  host
2023-11-14 22:13:30Z  10.0s  B-2          0  succeeded      0        local
2023-11-14 22:13:20Z  10.0s  A-1          0  succeeded      0        local
    image team/tools:7, sha256:0123456789ab
"""


@pytest.mark.parametrize(("width", "shown"), [(120, IN_CONTAINERS), (78, WITHOUT_ROOM)])
def test_the_image_of_a_run_is_shown(here: Path, width: int, shown: str) -> None:
    """Where any run had a container, with what the image's name meant then."""
    image = RecordImage(run_id=RunId("r-1"), image="team/tools:7", digest=f"sha256:{DIGEST}")
    record(
        here,
        (T, [begin("r-1", A), image]),
        (T + 10, [end("r-1", turns=0), begin("r-2", an_issue("B-2"))]),
        (T + 20, [end("r-2", turns=0)]),
    )

    assert listing(read_history(str(here / ".sortie.db")), width) == shown


@pytest.mark.usefixtures("three_runs")
def test_a_terminal_of_twenty_columns_has_a_list(here: Path) -> None:
    """Every cell is there, one below the other."""
    shown = listing(read_history(str(here / ".sortie.db")), 30)

    assert "  host     local" in shown.splitlines()
    assert max(map(len, shown.splitlines())) <= 30


@pytest.mark.usefixtures("three_runs")
def test_programs_get_every_field(cli: Cli, here: Path) -> None:
    """A row has exactly the documented fields; unknown is null, times are UTC."""
    rows = json.loads(cli("history", "--format", "json").out)

    assert [row["run_id"] for row in rows] == ["r-3", "r-2", "r-1"]
    assert rows[0] == {
        "run_id": "r-3",
        "issue": "B-2",
        "issue_id": "id-B-2",
        "attempt": 0,
        "status": "running",
        "error_kind": None,
        "error": None,
        "turns": 0,
        "credits": None,
        "tokens": None,
        "input_tokens": None,
        "output_tokens": None,
        "cached_tokens": None,
        "cost_usd": None,
        "estimated_usd": None,
        "model": None,
        "files_modified": None,
        "files_omitted": False,
        "tool_uses": None,
        "host": "local",
        "workspace": None,
        "agent": "kiro",
        "started_at": "2023-11-14T22:14:50.000000Z",
        "finished_at": None,
        "title": "Title of B-2",
        "description": "",
        "state": "Todo",
        "answer": None,
        "branch": None,
        "head_commit": None,
        "commits": None,
        "files_changed": None,
        "uncommitted": None,
        "handed_off_at": None,
        "delivery": None,
        "rule": None,
        "image": None,
        "image_digest": None,
        "taken_over": None,
    }
    assert rows[1]["error_kind"] == "turn_failed"
    assert rows[2] == {
        "run_id": "r-1",
        "issue": "A-1",
        "issue_id": "id-A-1",
        "attempt": 0,
        "status": "succeeded",
        "error_kind": None,
        "error": None,
        "turns": 1,
        "credits": 0.25,
        "tokens": None,
        "input_tokens": None,
        "output_tokens": None,
        "cached_tokens": None,
        "cost_usd": None,
        "estimated_usd": None,
        "model": "large",
        "files_modified": ["src/a.py", "b.md"],
        "files_omitted": True,
        "tool_uses": {"fs_write": 3},
        "host": "local",
        "workspace": "/w/A-1",
        "agent": "kiro",
        "started_at": "2023-11-14T22:13:20.000000Z",
        "finished_at": "2023-11-14T22:14:35.000000Z",
        "title": "Title of A-1",
        "description": "",
        "state": "Todo",
        "answer": None,
        "branch": None,
        "head_commit": None,
        "commits": None,
        "files_changed": None,
        "uncommitted": None,
        "handed_off_at": None,
        "delivery": None,
        "rule": None,
        "image": None,
        "image_digest": None,
        "taken_over": None,
    }


def test_amounts_are_shown_without_noise(cli: Cli, here: Path) -> None:
    """Neither people nor programs see what adding floating-point numbers leaves."""
    spent = Spending(credits=1.0000000000000002, cost_usd=2.2e-19)
    record(here, (T, [begin("r-1", A)]), (T + 1, [spending("r-1", spent), end("r-1", turns=1)]))

    (row,) = json.loads(cli("history", "--format", "json").out)
    assert (row["credits"], row["cost_usd"]) == (1.0, 0.0)
    assert "  1 credit, $0.00  " in cli("history").out


@pytest.mark.usefixtures("three_runs")
def test_history_can_be_narrowed_and_paged(cli: Cli) -> None:
    """An issue, a number and a run to go on behind choose the rows."""

    def runs(*arguments: str) -> list[str]:
        ran = cli("history", "--format", "json", *arguments)
        return [row["run_id"] for row in json.loads(ran.out)]

    assert runs("--issue", "A-1") == ["r-2", "r-1"]
    assert runs("--limit", "1") == ["r-3"]
    assert runs("--limit", "1", "--before", "r-3") == ["r-2"]
    assert runs("--issue", "nobody") == []
    assert cli("history", "--limit", "2").err == "there may be more: --before r-2\n"


@pytest.mark.usefixtures("three_runs")
def test_an_unknown_run_to_go_on_from_is_one_line(cli: Cli) -> None:
    """A run that is not recorded is a mistake, not an empty page."""
    ran = cli("history", "--before", "r-9")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "r-9" in ran.err


def test_before_the_first_daemon_there_is_nothing(cli: Cli, here: Path) -> None:
    """Without a database the history is empty, says why, and makes no file."""
    why = f"there is no database {here}/.sortie.db yet: no daemon has run here\n"

    assert cli("history", "--format", "json") == Ran(code=0, out="[]\n", err=why)
    assert cli("history") == Ran(code=0, out="", err=f"{why}no run is recorded\n")
    assert sorted(path.name for path in here.iterdir()) == ["WORKFLOW.md"]


def test_an_empty_history_is_told(cli: Cli, here: Path) -> None:
    """A database without the runs asked for is no failure."""
    record(here, (T, [begin("r-1", A)]))

    assert cli("history", "--issue", "C-3") == Ran(
        code=0, out="", err="no run is recorded of C-3\n"
    )


def test_what_is_no_database_is_one_line(cli: Cli, here: Path) -> None:
    """A broken database is a failure with its path, and not an empty history."""
    (here / ".sortie.db").write_text("this is no database, but it is long enough to be one" * 50)

    ran = cli("history", "--format", "json")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert ".sortie.db" in ran.err
    assert "name another file with db_path" in ran.err


def test_a_named_database_that_is_none_is_told_with_its_option(cli: Cli, here: Path) -> None:
    """Who named a file with --db reads no advice about a key of a workflow file."""
    (here / "notes.txt").write_text("this is no database, but it is long enough to be one" * 50)

    ran = cli("history", "--db", "notes.txt")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "it is not a database; name another file with --db" in ran.err


def test_an_identifier_cannot_act_on_the_terminal(cli: Cli, here: Path) -> None:
    """Markup and escapes in an identifier are printed as they are."""
    record(here, (T, [begin("r-1", HOSTILE)]))

    out = cli("history").out

    assert "[red]\\x1b[2J{{ 7*7 }}" in out
    assert "\x1b" not in out


def test_history_goes_on_beside_a_daemon(cli: Cli, here: Path) -> None:
    """What a daemon with an open database has committed is seen at once."""

    async def look() -> str:
        async with open_store(str(here / ".sortie.db")) as store:
            await store.commit([begin("r-1", A)], T)
            return await trio.to_thread.run_sync(lambda: cli("history", "--format", "json").out)

    assert [row["run_id"] for row in json.loads(trio.run(look))] == ["r-1"]


@pytest.mark.usefixtures("three_runs")
def test_a_broken_workflow_does_not_hide_the_history(cli: Cli, here: Path) -> None:
    """While the file cannot be read the runs are shown, and stderr says what is wrong and which
    database was read."""
    (here / "WORKFLOW.md").write_text(WORKFLOW.replace("kind: file", "kind: [file"))

    ran = cli("history")

    assert (ran.code, ran.out) == (0, LISTING)
    assert ran.err.startswith("sortie: WORKFLOW.md is not valid as read here: ")
    assert ran.err.endswith(
        f"\nshowing what is recorded in {here}/.sortie.db; --db FILE names another database\n"
    )


@pytest.mark.usefixtures("three_runs")
@pytest.mark.parametrize("word", ["A-1", "gone/W.md", "other.md", "issues"])
def test_a_word_that_is_no_workflow_file_shows_no_runs(cli: Cli, here: Path, word: str) -> None:
    """Runs of a database that merely lies there are not shown for it; how to ask is said."""
    (here / "issues").mkdir()

    ran = cli("history", word)

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert f"'sortie history --issue {word}' shows the runs of one issue" in ran.err


@pytest.mark.usefixtures("three_runs")
def test_a_vanished_workflow_does_not_hide_the_history(cli: Cli, here: Path) -> None:
    """Runs are shown of a file that is gone, where its database is."""
    (here / "WORKFLOW.md").unlink()

    assert (cli("history").code, cli("history").out) == (0, LISTING)


@pytest.mark.usefixtures("three_runs")
def test_a_broken_workflow_still_names_its_database(cli: Cli, here: Path) -> None:
    """db_path is read from a front matter of which the rest is wrong."""
    (here / ".sortie.db").rename(here / "other.db")
    (here / "WORKFLOW.md").write_text("---\ntracker: [\ndb_path: other.db\n---\n")

    ran = cli("history")

    assert (ran.code, ran.out) == (0, LISTING)
    assert f"recorded in {here}/other.db" in ran.err


@pytest.mark.usefixtures("three_runs")
def test_a_database_can_be_named(cli: Cli, here: Path) -> None:
    """With --db no workflow file is looked at."""
    (here / ".sortie.db").rename(here / "copy.db")
    (here / "WORKFLOW.md").unlink()

    assert cli("history", "--db", "copy.db") == Ran(code=0, out=LISTING, err="")


def test_the_runs_of_one_rule_are_shown(cli: Cli, here: Path) -> None:
    """Also of one issue among them; default is the top level of the settings."""
    b = an_issue("B-2")
    record(
        here,
        (T, [replace(begin("r-1", A), rule="docs"), begin("r-2", b)]),
        (T + 1, [end("r-2"), replace(begin("r-3", b), rule="docs")]),
    )

    def runs(*options: str) -> list[str]:
        found = cli("history", "--format", "json", *options)
        return [row["run_id"] for row in json.loads(found.out)]

    assert runs("--rule", "docs") == ["r-3", "r-1"]
    assert runs("--rule", "docs", "--limit", "1") == ["r-3"]
    assert runs("--rule", "docs", "--before", "r-3") == ["r-1"]
    assert runs("--rule", "docs", "--issue", "B-2") == ["r-3"]
    assert runs("--rule", "default") == ["r-2"]
    assert cli("history", "--rule", "x") == Ran(
        code=0, out="", err="no run is recorded by rule x\n"
    )
