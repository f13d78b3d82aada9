"""The directory of a demo."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import frontmatter
import pytest

from sortie.agents import ADAPTERS
from sortie.cli.demo.agent import installed_agent, simulator_command
from sortie.cli.demo.directory import ISSUE_FILES, Demo, make_demo
from sortie.daemon.dry_run import dry_run
from sortie.daemon.options import RunOptions
from sortie.daemon.workflow_file import load_workflow
from sortie.kiro.simulator.directives import read_directives
from sortie.model import SortieError
from tests.cli.conftest import Cli
from tests.cli.world import Ran


def contents(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, but for those of its repository."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and "project.git" not in path.parts
    }


def test_a_demo_is_valid_without_a_warning(cli: Cli, here: Path) -> None:
    """What is written can be run as it is."""
    made = make_demo(Path("new/demo"))

    assert made == Demo(directory=Path("new/demo"), made=True)
    assert sorted(contents(here / "new/demo")) == [
        ".gitignore",
        "WORKFLOW.md",
        *(f"issues/{name}" for name in ISSUE_FILES),
    ]
    assert cli("validate", str(made.workflow)) == Ran(
        code=0, out="", err="new/demo/WORKFLOW.md is valid\n"
    )


def test_the_demo_tells_its_story(here: Path) -> None:
    """The urgent issue comes first, two agents work at once, and one issue waits for another."""
    made = make_demo(here)
    options = RunOptions(workflow=made.workflow, environ={"HOME": str(here)})

    candidates = dry_run(options)
    settings = load_workflow(options).settings

    assert [found.issue.identifier for found in candidates] == [
        "DEMO-5",
        "DEMO-1",
        "DEMO-2",
        "DEMO-3",
        "DEMO-4",
    ]
    assert candidates[0].issue.priority == 1
    assert candidates[4].issue.blocked_by[0].identifier == "DEMO-3"
    assert settings.agent.max_concurrent_agents == 2
    assert settings.tracker.handoff_state == "Human Review"


def test_the_simulator_understands_every_issue(here: Path) -> None:
    """Each issue's directives are valid, and only DEMO-3 sets a state: its own, to Done."""
    made = make_demo(here)
    options = RunOptions(workflow=made.workflow, environ={"HOME": str(here)})

    asked = {
        found.issue.identifier: read_directives(found.issue.description, {})
        for found in dry_run(options)
    }

    assert {name: todo.set_state for name, todo in asked.items() if todo.set_state} == {
        "DEMO-3": "../../issues/DEMO-3.md Done"
    }
    assert all(1 <= todo.delay <= 5 for todo in asked.values())
    workspace = here / "workspaces" / "DEMO-3"
    assert os.path.normpath(workspace / "../../issues/DEMO-3.md") == str(
        here / "issues" / "DEMO-3.md"
    )


@pytest.mark.parametrize("kind", ADAPTERS.built_in)
def test_switching_the_agent_changes_three_things(
    kind: str, cli: Cli, here: Path, tmp_path: Path
) -> None:
    """Its kind, its command and its block; all else, and each issue, stays as it is."""
    adapter = ADAPTERS.load(kind)
    simulated = make_demo(here / "simulated")
    other = make_demo(here / "other", installed_agent(kind, "/bin/sh", {}))

    texts = [demo.workflow.read_text() for demo in (simulated, other)]
    (old, prompt), (new, new_prompt) = map(_parts, texts)
    assert new["agent"].pop("kind") == kind
    assert new["agent"].pop("command") == "/bin/sh"
    assert new.pop(adapter.block_name, {}) == adapter.demo
    del old["agent"]["kind"], old["agent"]["command"], old["kiro"]
    assert old.pop("repository") == {"url": str(simulated.directory / "project.git")}
    assert new.pop("repository") == {"url": str(other.directory / "project.git")}
    assert (new, new_prompt) == (old, prompt)
    assert [(other.directory / "issues" / name).read_bytes() for name in ISSUE_FILES] == [
        (simulated.directory / "issues" / name).read_bytes() for name in ISSUE_FILES
    ]
    assert cli("validate", str(other.workflow)) == Ran(
        code=0, out="", err=f"{other.workflow} is valid\n"
    )


def _parts(text: str) -> tuple[dict[str, Any], str]:
    """Return front matter and prompt of a workflow file."""
    found = frontmatter.loads(text)
    return dict(found.metadata), found.content


def test_the_simulator_is_named_by_its_absolute_path(tmp_path: Path) -> None:
    """The script beside the interpreter is the command; without it, the module is."""
    script = tmp_path / "sortie-kiro-sim"
    python = str(tmp_path / "python3")

    assert simulator_command(python) == (python, "-P", "-m", "sortie.kiro.simulator")
    script.touch(0o755)
    assert simulator_command(python) == (str(script),)


def test_the_command_survives_an_odd_path(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path with blanks and quotes arrives in the settings unchanged."""
    odd = tmp_path / 'my "py" # 1'
    odd.mkdir()
    (odd / "sortie-kiro-sim").touch(0o755)
    monkeypatch.setattr(sys, "executable", str(odd / "python"))

    made = make_demo(here)

    settings = load_workflow(RunOptions(workflow=made.workflow, environ={})).settings
    assert settings.agent.command == (str(odd / "sortie-kiro-sim"),)
    assert json.dumps(str(odd / "sortie-kiro-sim")) in made.workflow.read_text()


def test_a_demo_is_gone_on_with(here: Path) -> None:
    """Whatever was changed or added in a demo stays as it is."""
    made = make_demo(here)
    (here / "issues" / "DEMO-1.md").write_text("mine")
    (here / "issues" / "DEMO-2.md").unlink()
    (here / "notes.txt").write_text("mine too")
    made.workflow.write_text(made.workflow.read_text().replace("1000", "2000"))
    before = contents(here)

    again = make_demo(here)

    assert again == Demo(directory=here, made=False)
    assert contents(here) == before


def test_a_demo_cut_short_is_finished(here: Path, tmp_path: Path) -> None:
    """A directory in which some issues and no WORKFLOW.md were written becomes a whole demo."""
    whole = make_demo(tmp_path / "whole")
    (here / "issues").mkdir()
    (here / "issues" / "DEMO-1.md").write_text("mine")

    assert make_demo(here) == Demo(directory=here, made=True)
    expected = contents(whole.directory) | {"issues/DEMO-1.md": b"mine"}
    own, place = str(here).encode(), str(whole.directory).encode()
    expected["WORKFLOW.md"] = expected["WORKFLOW.md"].replace(place, own)
    assert contents(here) == expected


def test_without_git_there_is_no_repository(
    here: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the demo is valid all the same."""
    monkeypatch.setenv("PATH", "/nonexistent")
    made = make_demo(here)

    assert not (here / "project.git").exists()
    assert "repository" not in made.workflow.read_text()
    assert "verify" not in made.workflow.read_text()
    assert cli("validate", str(made.workflow)).code == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("WORKFLOW.md", "---\ntracker: {kind: file}\n---\n"),
        ("README", ""),
        ("issues/TASK-1.md", "---\ntitle: mine\n---\n"),
    ],
)
def test_other_peoples_directories_are_left_alone(here: Path, name: str, content: str) -> None:
    """A directory that holds anything else is refused, and nothing is written into it."""
    (here / "issues").mkdir()
    (here / name).write_text(content)

    with pytest.raises(SortieError) as error:
        make_demo(here)

    assert str(error.value) == (
        f"{here} holds other things, such as {Path(name).name}, and is no demo; "
        "name an empty directory or one that does not exist"
    )
    assert contents(here) == {name: content.encode()}


def test_a_place_that_cannot_be_used_is_refused(here: Path) -> None:
    """A file, or a place below one, is no directory; a FIFO is not waited for."""
    (here / "file").touch()
    (here / "odd").mkdir()
    os.mkfifo(here / "odd" / "WORKFLOW.md")

    for name in ("file", "file/below", "odd"):
        with pytest.raises(SortieError, match="name an"):
            make_demo(here / name)
