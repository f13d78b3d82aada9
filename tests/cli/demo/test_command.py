"""``sortie demo`` around the daemon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from sortie.cli.demo.command import demo_environment
from sortie.cli.demo.directory import make_demo
from sortie.cli.demo.report import FinalState, final_states
from sortie.daemon import daemon
from sortie.daemon.options import RunOptions
from sortie.store.sqlite import open_store
from tests.cli.conftest import Cli
from tests.store.records import an_issue, begin, end


def test_the_demo_has_a_world_of_its_own() -> None:
    """What would turn it to another tracker, agent or database is gone; a key is there."""
    environ = {
        "PATH": "/bin",
        "KIRO_API_KEY": "",
        "KIRO_SIM_DELAY": "1",
        "SORTIE_DB_PATH": "/production.db",
        "SORTIE_TRACKER_KIND": "jira",
        "SORTIE_WORKSPACE_ROOT": "/production",
        "SORTIE_AGENT_KIND": "claude-code",
        "SORTIE_AGENT_COMMAND": "claude",
        "SORTIE_AGENT_MAX_TURNS": "2",
        "SORTIE_SERVER_PORT": "0",
    }

    assert demo_environment(environ, Path("/demo")) == {
        "PATH": "/bin",
        "KIRO_API_KEY": "simulated",
        "XDG_DATA_HOME": "/demo/data",
        "KIRO_SIM_DELAY": "1",
        "SORTIE_AGENT_MAX_TURNS": "2",
        "SORTIE_SERVER_PORT": "0",
    }
    assert demo_environment({"KIRO_API_KEY": "mine"}, Path("/demo"))["KIRO_API_KEY"] == "mine"


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

    monkeypatch.setattr(daemon, "run_daemon", live)
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
        "DEMO-2  Say which file could not be opened               Todo             0",
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
    assert lives[0].environ["KIRO_API_KEY"] == "simulated"


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
