"""``sortie doctor``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.world import FIVE_MISTAKES, WORKFLOW, Ran, write_issue
from tests.ports import free_port

SERVED = f"""\
agent:
  command: sortie-kiro-sim
server:
  port: {free_port()}
kiro:"""
"""An agent that is there, and a port of its own."""

ALL = [
    "workflow",
    "settings",
    "machine.daemon",
    "machine.git",
    "machine.disk",
    "machine.files",
    "machine.processes",
    "machine.isolation",
    "machine.cgroups",
    "machine.port",
    "agent.program",
    "agent.credential",
    "tracker.read",
    "tracker.write",
    "tracker.trust",
    "tracker.candidates",
    "tracker.other_states",
]
"""The checks in the order in which things have to be right."""


@pytest.fixture(autouse=True)
def _workflow(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "WORKFLOW.md").write_text(WORKFLOW.replace("kiro:", SERVED))
    (here.parent / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.com\n")
    monkeypatch.setenv("KIRO_API_KEY", "simulated")
    write_issue(here, "A-1")


def lines_of(ran: Ran, part: str) -> list[str]:
    """Return the lines about a part of the program, and the remedies below them."""
    lines, last = [], ""
    for line in ran.out.splitlines():
        last = last if line.startswith("->") else line.split()[1]
        if last.startswith(part):
            lines.append(line)
    return lines


def test_where_all_is_well_each_check_is_a_line(cli: Cli, here: Path) -> None:
    """The lines come in the order in which things have to be right; nothing is written."""
    before = sorted(here.rglob("*"))

    ran = cli("doctor")

    lines = [line for line in ran.out.splitlines() if not line.startswith("->")]
    assert ran.code == 0
    assert [line.split()[1] for line in lines] == ALL
    depends = [f"machine.{it}" for it in ("disk", "files", "processes", "isolation", "cgroups")]
    for line in lines:
        outcome, name, *_ = line.split()
        if name == "agent.program":  # the simulator
            assert outcome == "warning"
        elif name not in depends:  # on the machine that the tests run on
            assert outcome == "ok", line
    assert ran.err.split()[1] == "ok,"
    assert sorted(here.rglob("*")) == before


def test_an_empty_machine_is_told_of_the_first_step(cli: Cli, here: Path) -> None:
    """Without a workflow file there is one remedy, also for programs."""
    (here / "WORKFLOW.md").unlink()

    ran, document = cli("doctor"), json.loads(cli("doctor", "--format", "json").out)

    assert ran.code == 1
    assert ran.out.splitlines()[:2] == [
        "failed   workflow              there is no WORKFLOW.md",
        "-> make one with 'sortie init', or name the one that there is",
    ]
    assert {line.split()[0] for line in ran.out.splitlines()[2:]} == {"skipped"}
    assert (document["ok"], document["checks"][0]["outcome"]) == (False, "failed")


def test_what_a_newcomer_lacks_is_named_one_after_the_other(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From what 'sortie init' writes to a daemon that can start: each remedy leads to the next."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("KIRO_API_KEY")
    workflow, issues = here / "new" / "WORKFLOW.md", here / "new" / "issues"
    workflow.parent.mkdir()
    cli("init", str(workflow))
    monkeypatch.chdir(workflow.parent)

    def failing() -> list[str]:
        checks = json.loads(cli("doctor", "--format", "json").out)["checks"]
        assert all(check["remedy"] for check in checks if check["outcome"] == "failed")
        return [check["check"] for check in checks if check["outcome"] == "failed"]

    told = [failing()]
    workflow.write_text(workflow.read_text().replace("  # command: sortie", "  command: sortie"))
    told.append(failing())
    monkeypatch.setenv("KIRO_API_KEY", "bad-key-of-mine")
    refused = cli("doctor")
    told.append(failing())
    monkeypatch.setenv("KIRO_API_KEY", "simulated")
    told.append(failing())
    issues.mkdir()
    told.append(failing())
    (issues / "TASK-1.md").write_text("---\ntitle: Say hello\nstate: Todo\n---\n")
    told.append(failing())

    assert told == [
        ["agent.program", "tracker.read"],
        ["agent.credential", "tracker.read"],
        ["agent.credential", "tracker.read"],
        ["tracker.read"],
        ["tracker.read"],
        [],
    ]
    assert "bad-key-of-mine" not in refused.out


def test_a_failed_check_is_told_with_its_remedy(cli: Cli, here: Path) -> None:
    """What needs it is skipped, and the exit code says that something has failed."""
    (here / "issues" / "A-1.md").unlink()
    (here / "issues").rmdir()

    ran = cli("doctor")

    lines = lines_of(ran, "tracker")
    assert ran.code == 1
    assert lines[0].startswith("failed   tracker.read ")
    assert "it is not there" in lines[0]
    assert lines[1] == "-> look at file.path, and who may read it"
    skipped = [line for line in lines[2:] if line.split()[0] == "skipped"]
    assert [line.split()[1] for line in lines[2:] if line not in skipped] == ["tracker.trust"]
    assert ran.err.startswith("sortie: ")
    assert ran.err.endswith(" 1 failed, 3 skipped\n")


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


def test_a_host_that_there_is_not_is_told_with_those_that_there_are(cli: Cli, here: Path) -> None:
    """A misspelt name is no host that is well."""
    none = cli("doctor", "--host", "build-9")
    remote = (here / "WORKFLOW.md").read_text()
    remote = remote.replace("workspace:", "worker:\n  ssh_hosts: [a, b]\nworkspace:")
    (here / "WORKFLOW.md").write_text(remote)
    another = cli("doctor", "--host", "build-9")

    assert (none.code, another.code) == (1, 1)
    assert "all runs are on this machine" in none.err
    assert another.err.endswith("'build-9' is no host of worker.ssh_hosts; there are: a, b\n")


def test_places_that_cannot_be_used_are_told(cli: Cli, here: Path) -> None:
    """Each by its key."""
    (here / "work").write_text("a file")

    ran = cli("doctor")

    assert ran.code == 1
    assert "failed   settings.workspace.root" in ran.out
