"""``sortie demo`` around the daemon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from sortie.cli.demo.command import NO_KEY, demo_environment, simulated_environment
from sortie.cli.demo.directory import make_demo
from sortie.cli.demo.report import FinalState, final_states
from sortie.daemon import process
from sortie.daemon.options import RunOptions
from sortie.daemon.workflow_file import load_workflow
from sortie.store.sqlite import open_store
from tests.cli.conftest import Cli
from tests.store.records import an_issue, begin, end

ENVIRON = {
    "PATH": "/bin",
    "KIRO_API_KEY": "",
    "KIRO_SIM_DELAY": "1",
    "XDG_DATA_HOME": "/home/me/data",
    "SORTIE_DB_PATH": "/production.db",
    "SORTIE_TRACKER_KIND": "jira",
    "SORTIE_WORKSPACE_ROOT": "/production",
    "SORTIE_AGENT_KIND": "claude-code",
    "SORTIE_AGENT_COMMAND": "claude",
    "SORTIE_AGENT_MAX_TURNS": "2",
    "SORTIE_SERVER_PORT": "0",
}


def test_the_demo_has_a_world_of_its_own() -> None:
    """What would turn it to another tracker, agent or database is gone."""
    assert demo_environment(ENVIRON) == {
        "PATH": "/bin",
        "KIRO_API_KEY": "",
        "KIRO_SIM_DELAY": "1",
        "XDG_DATA_HOME": "/home/me/data",
        "SORTIE_AGENT_MAX_TURNS": "2",
        "SORTIE_SERVER_PORT": "0",
    }


def test_the_simulator_has_a_key_and_a_place() -> None:
    """Its conversations do not lie where Kiro would keep its own."""
    made = simulated_environment({"PATH": "/bin", "KIRO_API_KEY": ""}, Path("/demo"))

    places = {"XDG_DATA_HOME": "/demo/data", "KIRO_HOME": "/demo/data/kiro"}
    assert made == {"PATH": "/bin", "KIRO_API_KEY": NO_KEY, **places}
    assert simulated_environment({"KIRO_API_KEY": "mine"}, Path("/"))["KIRO_API_KEY"] == "mine"


def test_no_text_of_the_demo_is_hidden_as_its_key(tmp_path: Path) -> None:
    """A secret is hidden wherever its text stands."""
    made = make_demo(tmp_path / "demo").directory
    key = simulated_environment({}, made)["KIRO_API_KEY"]

    texts = [path.read_text() for path in made.rglob("*.md")]
    assert len(texts) > 5
    assert [text for text in texts if key in text] == []


@pytest.fixture
def lives(monkeypatch: pytest.MonkeyPatch) -> list[RunOptions]:
    """What daemons were started with; each records one run of DEMO-1 and sets a state."""
    started: list[RunOptions] = []

    async def record(directory: Path) -> None:
        async with open_store(str(directory / ".sortie.db")) as store:
            issue = an_issue("DEMO-1")
            await store.commit([begin("r-1", issue), end("r-1", turns=1)], 1.0)

    def live(options: RunOptions) -> int:
        started.append(options)
        issue = options.workflow.parent / "issues" / "DEMO-1.md"
        issue.write_text(issue.read_text().replace("state: Todo", "state: Human Review"))
        trio.run(record, options.workflow.parent)
        return 0

    monkeypatch.setattr(process, "run_daemon", live)
    return started


def test_a_demo_shows_what_it_made_and_what_became_of_it(
    cli: Cli, here: Path, lives: list[RunOptions]
) -> None:
    """The daemon gets the demo's workflow, key and options; a table shows how the issues end."""
    ran = cli("demo", "--exit-when-idle", "--port", "0", "--log-level", "error")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Made a demo in sortie-demo\n")
    assert [line.rstrip() for line in ran.out.splitlines()[-8:]] == [
        "issue   title                                            state         runs  last run",
        "DEMO-1  Answer the five most frequent questions          Human Review     1  succeeded",
        "DEMO-2  Count lines rightly                              Todo             0",
        "DEMO-3  Add a setting for the time zone of reports       Todo             0",
        "DEMO-4  Describe the time zone of reports in the manual  Todo             0",
        "DEMO-5  Stop logging customers' addresses                Todo             0",
        "",
        "Look closer: sortie history --workflow sortie-demo/WORKFLOW.md",
    ]
    assert lives == [
        RunOptions(
            workflow=Path("sortie-demo/WORKFLOW.md"),
            environ=lives[0].environ,
            port=0,
            log_level="error",
            exit_when_idle=True,
        )
    ]
    assert lives[0].environ["KIRO_API_KEY"] == NO_KEY


def test_a_demo_without_end_says_how_to_end_it(
    cli: Cli, here: Path, lives: list[RunOptions]
) -> None:
    """Without --exit-when-idle people are told about Ctrl-C, and a second time that it goes on."""
    first, second = cli("demo", "d"), cli("demo", "d")

    assert "until you press Ctrl-C" in first.out
    assert second.out.startswith("Going on with the demo in d\n")


def test_final_states_are_read_from_whatever_is_there(here: Path) -> None:
    """Files that people broke or added are shown as far as they can be read."""
    make_demo(here)
    issues = here / "issues"
    for number in (1, 2, 3):
        (issues / f"DEMO-{number}.md").unlink()
    (issues / "DEMO-4.md").write_bytes(b"---\ntitle: [\n---\n")
    (issues / "DEMO-5.md").write_bytes(b"\xff\xfe")
    (issues / "X.md").write_text("---\nidentifier: X-1\ntitle: 7\nstate: Done\n---\n")
    (issues / "Y.md").write_text("no front matter")
    (issues / ".#Z.md").write_text("an editor's lock")
    (issues / "folder.md").mkdir()
    os.mkfifo(issues / "pipe.md")

    assert final_states(issues) == [
        FinalState(identifier="DEMO-4", title="", state="unreadable"),
        FinalState(identifier="DEMO-5", title="", state="unreadable"),
        FinalState(identifier="X-1", title="7", state="Done"),
        FinalState(identifier="Y", title="", state="unreadable"),
    ]
    assert final_states(here / "gone") == []


# Real agents


@pytest.fixture
def installed(here: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program that stands where an agent's would, on the PATH."""
    programs = here / "bin"
    programs.mkdir()
    (programs / "toy-agent").write_text("#!/bin/sh\n")
    (programs / "toy-agent").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    return str(programs / "toy-agent")


def test_an_agent_that_is_installed_works_on_the_demo(
    cli: Cli, here: Path, lives: list[RunOptions], installed: str
) -> None:
    """It is named in the workflow, has the environment of its user, and people are told."""
    ran = cli("demo", "d", "--agent", "toy", "--exit-when-idle")

    assert (ran.code, ran.err) == (0, "")
    assert "The agents are real: toy-agent (toy) asks its model" in ran.out
    assert "simulated" not in ran.out
    environ = lives[0].environ
    assert "KIRO_API_KEY" not in environ
    assert "XDG_DATA_HOME" not in environ
    agent = load_workflow(RunOptions(workflow=lives[0].workflow, environ={})).settings.agent
    assert (agent.kind, agent.command) == ("toy", "toy-agent")


def test_a_demo_is_gone_on_with_by_the_agent_that_it_has(
    cli: Cli, here: Path, lives: list[RunOptions], installed: str
) -> None:
    """Also where nobody names it again; another one is refused, and nothing is changed."""
    cli("demo", "d", "--agent", "toy", "--exit-when-idle")

    again = cli("demo", "d", "--exit-when-idle")
    other = cli("demo", "d", "--agent", "toy", "--agent-command", installed)

    assert "The agents are real: toy-agent (toy)" in again.out
    assert other.code == 1
    assert other.err == (
        "sortie: d is a demo for toy (toy-agent); name another directory, or change agent.kind,"
        " agent.command and the agent's block in d/WORKFLOW.md\n"
    )
    assert len(lives) == 2


def test_an_agent_that_is_not_there_is_told_before_anything_is_written(
    cli: Cli, here: Path, lives: list[RunOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing, and what there is to do about it."""
    monkeypatch.setenv("PATH", "/nowhere")

    missing = cli("demo", "d", "--agent", "toy")
    unknown = cli("demo", "d", "--agent", "tea")
    alone = cli("demo", "d", "--agent-command", "tea")

    assert (missing.code, unknown.code, alone.code) == (1, 1, 2)
    assert missing.err == (
        "sortie: the demo needs toy and cannot find its program: the agent's program 'toy-agent'"
        " was not found on local on PATH or beside Sortie's interpreter; install it or set"
        " agent.command to its absolute path; name another one with --agent-command, or leave"
        " --agent out for simulated agents, which need nothing\n"
    )
    assert unknown.err.startswith("sortie: --agent tea: no adapter of kind 'tea'; known: ")
    assert "--agent-command" in alone.err
    assert not (here / "d").exists()
    assert lives == []
