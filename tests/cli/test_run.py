"""``sortie run``: what happens before there is a daemon, and the dry run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sortie.daemon import process
from sortie.daemon.options import RunOptions
from tests.cli.conftest import Cli
from tests.cli.world import WORKFLOW, Ran, write_issue


def test_a_dry_run_judges_every_candidate(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates are listed in the order of dispatch, each with a verdict, and nothing changes."""
    monkeypatch.setenv("SORTIE_AGENT_COMMAND", "sortie-kiro-sim")
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    write_issue(here, "A-1", blocked_by="[A-2]")
    write_issue(here, "A-2", priority=2)
    write_issue(here, "A-3", priority=1, state="Doing")
    write_issue(here, "A-4", state="Done")
    before = sorted(here.rglob("*"))

    ran = cli("run", "--dry-run")

    lines = ran.out.splitlines()
    assert lines[:2] == ["A-3 (Doing) would start", "A-2 (Todo) would start"]
    assert lines[2].startswith("A-1 (Todo) waits: ")
    assert "A-2" in lines[2].partition("waits: ")[2]
    assert (ran.code, ran.err, len(lines)) == (0, "", 3)
    assert sorted(here.rglob("*")) == before


def test_a_dry_run_is_data(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON holds a row for each candidate."""
    monkeypatch.setenv("SORTIE_AGENT_COMMAND", "sortie-kiro-sim")
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    write_issue(here, "A-1", priority=3)
    write_issue(here, "A-2", blocked_by="[gone]", title="'[bold]x\\e'")

    first, second = json.loads(cli("run", "--dry-run", "--format", "json").out)

    assert first == {
        "issue": "A-1",
        "issue_id": "A-1",
        "title": "Title of A-1",
        "state": "Todo",
        "priority": 3,
        "rule": None,
        "verdict": "start",
        "reasons": [],
    }
    assert (second["issue"], second["verdict"], len(second["reasons"])) == ("A-2", "wait", 1)


def test_a_dry_run_without_candidates_says_so(cli: Cli, here: Path) -> None:
    """Nothing to do is said on stderr; stdout stays a list."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    (here / "issues").mkdir()

    assert cli("run", "--dry-run") == Ran(code=0, out="", err="no issue is in an active state\n")
    assert cli("run", "--dry-run", "--format", "json") == Ran(code=0, out="[]\n", err="")


def test_a_tracker_that_does_not_answer_is_one_line(cli: Cli, here: Path) -> None:
    """A dry run whose poll fails ends with 1 and the tracker's complaint."""
    (here / "WORKFLOW.md").write_text(WORKFLOW)

    ran = cli("run", "--dry-run")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert ran.err.startswith("sortie: cannot read issues from ")


def test_an_invalid_workflow_lists_its_errors(cli: Cli, here: Path) -> None:
    """The daemon does not start, and each error stands on a line before the summary."""
    (here / "WORKFLOW.md").write_text(WORKFLOW.replace("kind: file", "kind: fiel"))

    ran = cli("run")

    assert ran.code == 1
    assert ran.err.splitlines()[0].startswith("WORKFLOW.md:3:9: tracker.kind: ")
    assert ran.err.endswith(
        "sortie: WORKFLOW.md: 1 error; mend what is listed above and try again\n"
    )


def test_options_reach_the_daemon(cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option arrives, its exit code is the program's, and what is not given is left open."""
    seen: list[RunOptions] = []

    def fake(options: RunOptions) -> int:
        seen.append(options)
        return 3

    monkeypatch.setattr(process, "run_daemon", fake)
    monkeypatch.setenv("SORTIE_AGENT_MAX_TURNS", "4")
    (here / "W.md").write_text(WORKFLOW)

    given = "--host ::1 --port 0 --log-level debug --log-format json --env-file e --exit-when-idle"
    assert cli("run", "W.md", *given.split()).code == 3
    assert cli("run", "W.md").code == 3
    assert seen[0].environ["SORTIE_AGENT_MAX_TURNS"] == "4"
    assert seen == [
        RunOptions(
            workflow=Path("W.md"),
            environ=seen[0].environ,
            env_file=Path("e"),
            host="::1",
            port=0,
            log_level="debug",
            log_format="json",
            exit_when_idle=True,
        ),
        RunOptions(workflow=Path("W.md"), environ=seen[1].environ),
    ]
    assert seen[0].flags() == {
        "server.host": "::1",
        "server.port": "0",
        "logging.level": "debug",
        "logging.format": "json",
    }
    assert {type(value) for value in seen[0].flags().values()} <= {str}
