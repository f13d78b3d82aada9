"""``sortie store`` and ``sortie export``, with the rows in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sortie.daemon.locks import database_lock
from sortie.scheduler.records import Record
from tests.cli.conftest import Cli
from tests.cli.test_history import T, record
from tests.cli.world import WORKFLOW
from tests.store.records import a_delivery, an_issue, begin, delivery, end, workspace

RUN = "11111111-2222-4333-8444-555555555555"
DIFF = "diff --git a/a.py b/a.py\n"


@pytest.fixture(autouse=True)
def _recorded(here: Path) -> None:
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    a, b = an_issue("A"), an_issue("B")
    first: list[Record] = [begin(RUN, a), workspace(RUN, a), delivery(RUN, a, a_delivery(), DIFF)]
    record(here, (T, [*first, end(RUN)]), (T + 1, [begin("r-2", b), end("r-2")]))
    transcripts = here / ".sortie.db.transcripts"
    transcripts.mkdir()
    for run in (RUN, RUN.replace("1", "2")):
        (transcripts / f"{run}.jsonl.gz").touch()


def test_all_runs_and_days_are_written_as_lines(cli: Cli) -> None:
    """Newest first, with what their work changed; of one issue its runs alone."""
    every, of_one = cli("export"), cli("export", "--issue", "A", "--format", "jsonl")
    lines, one = ([json.loads(line) for line in ran.out.splitlines()] for ran in (every, of_one))

    assert [(line["type"], line.get("run_id"), line.get("diff")) for line in lines] == [
        ("run", "r-2", None),
        ("run", RUN, DIFF),
        ("day", None, None),
    ]
    assert [line["run_id"] for line in one] == [RUN]


def test_a_long_history_is_written_page_by_page(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """No run is left out or comes twice."""
    monkeypatch.setattr("sortie.cli.export._PAGE", 1)

    lines = [json.loads(line) for line in cli("export").out.splitlines()]

    assert [line["run_id"] for line in lines if line["type"] == "run"] == ["r-2", RUN]


def test_an_issue_is_forgotten_with_what_was_said(cli: Cli, here: Path) -> None:
    """What is left of it outside of the database is named."""
    done, again = cli("store", "purge", "A"), cli("store", "purge", "A")

    assert (done.code, done.out) == (0, "forgot A, with 1 runs\n")
    assert "its workspace is left for you to remove, on local: " in done.err
    assert (again.code, "nothing of A is recorded" in again.err) == (1, True)
    assert "no run is recorded of A" in cli("history", "--issue", "A").err
    assert "r-2" in cli("history", "--format", "json").out
    assert [path.name for path in (here / ".sortie.db.transcripts").iterdir()] == [
        f"{RUN.replace('1', '2')}.jsonl.gz"
    ]


def test_nothing_is_done_while_a_daemon_runs(cli: Cli, here: Path) -> None:
    """It would write over what is changed."""
    with database_lock(str(here / ".sortie.db")) as lock:
        lock.ensure()
        done = cli("store", "purge", "A")

    assert (done.code, "stop the daemon first" in done.err) == (1, True)
    assert RUN in cli("history", "--format", "json").out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("copy",), 2, "copy needs --to server or --to file"),
        (("copy", "A", "--to", "file"), 2, "copy needs --to server or --to file"),
        (("copy", "--to", "server"), 1, "store.url is not set"),
        (("purge",), 2, "purge needs an issue"),
        (("purge", "A", "--to", "file"), 2, "purge needs an issue"),
    ],
)
def test_what_cannot_be_done_is_said(
    cli: Cli, words: tuple[str, ...], code: int, said: str
) -> None:
    """And nothing is changed."""
    done = cli("store", *words)

    assert (done.code, said in done.err) == (code, True)


def test_without_a_database_there_is_nothing_to_do(cli: Cli, here: Path) -> None:
    """None is made."""
    (here / ".sortie.db").unlink()

    for words in (("export",), ("store", "purge", "A")):
        done = cli(*words)
        assert (done.code, "there is no database" in done.err) == (1, True)
    assert not (here / ".sortie.db").exists()
