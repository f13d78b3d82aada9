"""``sortie init``."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sortie.agents import ADAPTERS as AGENTS
from sortie.cli.new_files import write_new
from sortie.daemon.options import RunOptions
from sortie.daemon.workflow_file import load_workflow
from sortie.model import SortieError
from sortie.trackers import ADAPTERS as TRACKERS
from tests.cli.conftest import Cli
from tests.cli.world import Ran, write_issue


def test_the_starter_is_valid_without_a_warning(cli: Cli) -> None:
    """What init writes can be used as it is."""
    ran = cli("init")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Wrote WORKFLOW.md. Next:\n")
    assert "  3. Install kiro-cli and set KIRO_API_KEY" in ran.out
    assert "  4. sortie doctor " in ran.out
    assert cli("validate") == Ran(code=0, out="", err="WORKFLOW.md is valid\n")


@pytest.mark.parametrize("agent", AGENTS.built_in)
@pytest.mark.parametrize("tracker", TRACKERS.built_in)
def test_each_starter_is_valid_without_a_warning(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch, agent: str, tracker: str
) -> None:
    """For every agent and tracker, once the variable is set that the next steps name."""
    ran = cli("init", "--agent", agent, "--tracker", tracker)
    for name in re.findall(r"\b[A-Z]+_[A-Z_]+\b", ran.out):
        monkeypatch.setenv(name, "secret-enough")

    assert (ran.code, ran.err) == (0, "")
    assert ("a first issue, a Markdown file" in ran.out) == (tracker == "file")
    assert cli("validate") == Ran(code=0, out="", err="WORKFLOW.md is valid\n")
    settings = load_workflow(RunOptions(workflow=here / "WORKFLOW.md", environ=os.environ)).settings
    assert (settings.agent.kind, settings.tracker.kind) == (agent, tracker)
    assert settings.agent.max_concurrent_agents == 2
    strangers = tracker in ("github", "gitlab", "gitea")
    assert settings.trust.authors == ("write" if strangers else "anyone")


@pytest.mark.parametrize("word", ["agent", "tracker"])
def test_a_kind_that_is_not_there_is_told_with_those_that_are(
    cli: Cli, here: Path, word: str
) -> None:
    """And nothing is written."""
    ran = cli("init", f"--{word}", "nonesuch")

    known = (AGENTS if word == "agent" else TRACKERS).kinds()
    assert ran.err == (
        f"sortie: --{word} nonesuch: no adapter of kind 'nonesuch'; known: {', '.join(known)}\n"
    )
    assert (ran.code, os.listdir(here)) == (1, [])


def test_an_agent_of_another_package_has_a_starter_too(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the kind, and nothing is known of its settings."""
    load = AGENTS.load
    monkeypatch.setattr(AGENTS, "load", lambda kind: load("kiro" if kind == "their-own" else kind))

    assert cli("init", "--agent", "their-own").code == 0
    assert "\nagent:\n  kind: their-own\n  max_con" in (here / "WORKFLOW.md").read_text()


def test_programs_are_told_what_was_written(cli: Cli, here: Path) -> None:
    """Beside the workflow file there is its schema, unless that was there."""
    first = cli("init", "--format", "json")
    (here / "WORKFLOW.md").unlink()
    second = cli("init", "--format", "json")

    assert json.loads(first.out) == {"written": ["WORKFLOW.md", "WORKFLOW.schema.json"]}
    assert json.loads(second.out) == {"written": ["WORKFLOW.md"]}


def test_the_starter_finds_the_issue_of_its_next_steps(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An issue put where the next steps say would be started, by an agent that is installed."""
    monkeypatch.setenv("SORTIE_AGENT_COMMAND", "sortie-kiro-sim")
    cli("init")
    write_issue(here, "TASK-1")

    assert cli("run", "--dry-run") == Ran(code=0, out="TASK-1 (Todo) would start\n", err="")


@pytest.mark.parametrize(
    ("turn", "attempt", "says"),
    [
        ("1", "0", False),
        ("2", "0", "This is turn 2 of 5"),
        ("1", "1", "1 earlier attempt failed. Look at what it left here"),
        ("1", "2", "2 earlier attempts failed. Look at what they left here"),
    ],
)
def test_the_starters_prompt_knows_turn_and_attempt(
    cli: Cli, here: Path, turn: str, attempt: str, says: str | bool
) -> None:
    """The starter's prompt renders for a first turn, a continuation and a retry."""
    cli("init")
    write_issue(here, "TASK-1")

    ran = cli("render", "TASK-1", "--turn", turn, "--attempt", attempt)

    assert ran.code == 0
    assert "\n\n\n" not in ran.out
    if says:
        assert str(says) in ran.out
    else:
        assert "This is turn" not in ran.out
        assert "earlier attempt" not in ran.out


def test_nothing_is_overwritten(cli: Cli, here: Path) -> None:
    """An existing file, even an empty one or a dangling link, is left as it is."""
    (here / "a.md").touch()
    (here / "b.md").symlink_to("nowhere.md")

    for name in ("a.md", "b.md"):
        ran = cli("init", name)

        assert (ran.code, ran.out) == (1, "")
        assert ran.err == (
            f"sortie: {name} is there already and is never overwritten; "
            "name another file, or move it\n"
        )
    assert (here / "a.md").read_bytes() == b""
    assert sorted(os.listdir(here)) == ["a.md", "b.md"]


def test_git_does_not_see_what_a_daemon_writes(cli: Cli, here: Path) -> None:
    """What lies beside the workflow file is ignored, and what was there before stays as it was."""
    git = ["git", "-c", "core.excludesFile=", "-C", str(here)]
    subprocess.run([*git, "init", "-q"], check=True)
    (here / ".gitignore").write_bytes(b"*.log\r\n.sortie-tracker-*\nbuild/")
    for name in ("", "-wal", "-shm", ".daemon", ".lock"):
        (here / f".sortie.db{name}").touch()
    (here / "sortie.env").touch()
    (here / "issues").mkdir()
    (here / "issues/.sortie-tracker-lock").touch()

    ran = [cli("init", name) for name in ("WORKFLOW.md", "other.md")]

    seen = subprocess.run(
        [*git, "status", "--porcelain", "-uall"], check=True, capture_output=True, text=True
    )
    assert [(one.code, one.err) for one in ran] == [(0, ""), (0, "")]
    assert seen.stdout == (
        "?? .gitignore\n?? WORKFLOW.md\n?? WORKFLOW.schema.json\n?? other.md\n"
        "?? other.schema.json\n"
    )
    assert (here / ".gitignore").read_bytes() == (
        b"*.log\r\n.sortie-tracker-*\nbuild/\n# What Sortie keeps here\n.sortie.db*\nsortie.env\n"
    )


def test_workspaces_are_not_in_the_repository(cli: Cli, here: Path) -> None:
    """The starter names no root inside the directory; one that is inside a work tree is told."""
    subprocess.run(["git", "init", "-q", str(here)], check=True)
    cli("init")
    starter = (here / "WORKFLOW.md").read_text()
    (here / "inside.md").write_text(starter.replace("file:\n", "workspace: {root: w}\nfile:\n", 1))

    plain, inside = cli("validate"), cli("validate", "inside.md")

    assert plain == Ran(code=0, out="", err="WORKFLOW.md is valid\n")
    assert inside.code == 0
    assert inside.out.startswith(
        f"inside.md:13:19: warning: workspace.root: lies inside the git work tree {here}; "
    )


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("elsewhere"), os.mkfifo, Path.mkdir])
def test_a_gitignore_that_is_no_file_is_left_alone(
    cli: Cli, here: Path, make: Callable[[Path], None]
) -> None:
    """The workflow file is written all the same, and what to do is said."""
    make(here / ".gitignore")

    ran = cli("init")

    assert (ran.code, (here / "WORKFLOW.md").exists()) == (0, True)
    assert ran.err.startswith("sortie: cannot extend .gitignore: ")
    assert ran.err.endswith("; have git ignore .sortie.db*, .sortie-tracker-*, sortie.env there\n")
    assert not (here / "elsewhere").exists()


def test_a_directory_is_no_file(cli: Cli, here: Path) -> None:
    """A directory or a file in a missing one is refused with what to do."""
    (here / "team").mkdir()

    assert cli("init", "team").err == (
        "sortie: team is a directory; name a file, such as team/WORKFLOW.md\n"
    )
    assert cli("init", "gone/W.md") == Ran(
        code=1, out="", err="sortie: cannot write gone/W.md: make the directory gone first\n"
    )
    assert os.listdir(here) == ["team"]


def test_next_steps_name_the_file_as_a_shell_needs_it(cli: Cli, here: Path) -> None:
    """A name with a blank is quoted, a plain default one is left out."""
    (here / "my team").mkdir()

    out = cli("init", "my team/W.md").out

    assert "     sortie run 'my team/W.md' --dry-run\n" in out
    assert "       mkdir -p 'my team/issues'\n" in out


def test_what_cannot_be_written_whole_is_not_left(here: Path) -> None:
    """A write that fails in the middle leaves no file, and says why."""
    path = here / "W.md"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(SortieError, match=r"cannot write .*W\.md: File too large"):
            write_new(path, "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "schema", "written"),
    [
        ("WORKFLOW.md", "WORKFLOW.schema.json", "WORKFLOW.schema.json"),
        ("my team\n.md", "my team\n.schema.json", "my%20team%0A.schema.json"),
    ],
)
def test_editors_find_a_schema(cli: Cli, here: Path, name: str, schema: str, written: str) -> None:
    """The second line names the schema that stands beside the file, whatever it is called."""
    cli("init", name)

    text = (here / name).read_text().splitlines()
    assert text[:2] == ["---", f"# yaml-language-server: $schema={written}"]
    assert (here / schema).read_text() == cli("schema").out
    assert json.loads((here / schema).read_text())["type"] == "object"
    assert cli("validate", name).code == 0


def test_an_existing_schema_is_kept(cli: Cli, here: Path) -> None:
    """What is called like the schema may be somebody's."""
    (here / "WORKFLOW.schema.json").write_text("mine")

    assert cli("init").code == 0
    assert (here / "WORKFLOW.schema.json").read_text() == "mine"
