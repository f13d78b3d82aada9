"""``sortie doctor``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.world import FIVE_MISTAKES, WORKFLOW, write_issue


@pytest.fixture(autouse=True)
def _workflow(here: Path) -> None:
    (here / "WORKFLOW.md").write_text(WORKFLOW)
    write_issue(here, "A-1")


def test_where_all_is_well_each_check_is_a_line(cli: Cli, here: Path) -> None:
    """The lines come in the order in which things have to be right; nothing is written."""
    before = sorted(here.rglob("*"))

    ran = cli("doctor")

    assert ran.code == 0
    assert [line.split()[:2] for line in ran.out.splitlines()] == [
        ["ok", "workflow"],
        ["ok", "settings"],
        ["ok", "tracker.read"],
        ["ok", "tracker.write"],
        ["ok", "tracker.candidates"],
        ["ok", "tracker.other_states"],
    ]
    assert ran.err == "6 ok\n"
    assert sorted(here.rglob("*")) == before


def test_a_failed_check_is_told_with_its_remedy(cli: Cli, here: Path) -> None:
    """What needs it is skipped, and the exit code says that something has failed."""
    (here / "issues" / "A-1.md").unlink()
    (here / "issues").rmdir()

    ran = cli("doctor")

    lines = ran.out.splitlines()
    assert ran.code == 1
    assert lines[2].startswith("failed   tracker.read ")
    assert "it is not there" in lines[2]
    assert lines[3] == "-> look at file.path, and who may read it"
    assert {line.split()[0] for line in lines[4:]} == {"skipped"}
    assert ran.err == "sortie: 2 ok, 1 failed, 3 skipped\n"


def test_a_misspelt_state_is_a_warning(cli: Cli, here: Path) -> None:
    """It keeps nobody from working, so the exit code is 0."""
    write_issue(here, "A-2", state="Reveiw")

    ran = cli("doctor", "--format", "json")

    document = json.loads(ran.out)
    assert (ran.code, document["ok"]) == (0, True)
    assert document["checks"][-1] == {
        "check": "tracker.other_states",
        "outcome": "warning",
        "message": 'issues are in states that look like others: "Reveiw" (A-2) is not "Review"',
        "remedy": "spell them alike in the tracker and in the workflow file",
    }


def test_every_mistake_of_the_workflow_file_is_a_failed_check(cli: Cli, here: Path) -> None:
    """The tracker is not asked by settings that cannot be used."""
    (here / "WORKFLOW.md").write_text(FIVE_MISTAKES)

    ran = cli("doctor", "--format", "json")

    checks = json.loads(ran.out)["checks"]
    failed = [check["message"] for check in checks if check["outcome"] == "failed"]
    assert ran.code == 1
    assert [message.split(": ")[1] for message in failed] == [
        "tracker.active_states",
        "tracker.active_state",
        "polling.interval_ms",
        "agent.max_turns",
        "server.port",
    ]
    assert checks[-1]["outcome"] == "skipped"


def test_places_that_cannot_be_used_are_told(cli: Cli, here: Path) -> None:
    """Each by its key."""
    (here / "work").write_text("a file")

    ran = cli("doctor")

    assert ran.code == 1
    assert "failed   settings.workspace.root" in ran.out
