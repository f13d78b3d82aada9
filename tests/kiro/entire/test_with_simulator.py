"""A turn of the simulator in a repository with hooks: they call the agent of Entire."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kiro.entire.test_program import PROGRAM, Repo

SIMULATOR = [sys.executable, "-m", "sortie.kiro.simulator"]
TURN = ["chat", "--no-interactive", "--trust-all-tools", "--agent", "entire"]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository; ``entire`` stands for the program that calls the agent, as it would."""
    (tmp_path / "repo").mkdir()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "entire"
    words = " ".join(f"'{word}'" for word in (*PROGRAM, "parse-hook", "--hook"))
    program.write_text(
        f'#!/bin/sh\n[ "$1 $2" = "hooks kiro" ] || exit 9\n{words} "$3" >>"$EVENTS"\n'
    )
    program.chmod(0o755)
    return Repo(tmp_path / "repo")


def turn(repo: Repo, prompt: str, *options: str) -> list[dict[str, Any] | None]:
    """Run a turn; return what Entire heard of it."""
    events = repo.root.parent / "events"
    events.unlink(missing_ok=True)
    path = f"{repo.root.parent / 'bin'}:{repo.environment()['PATH']}"
    done = subprocess.run(
        [*SIMULATOR, *TURN, *options, prompt],
        cwd=repo.root,
        env=repo.environment(KIRO_API_KEY="sk-1", PATH=path, EVENTS=str(events)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "hook" not in done.stderr
    return [json.loads(line) for line in events.read_text().splitlines()]


def recorded(ended: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the history that was recorded at the end of a turn."""
    history: list[dict[str, Any]] = json.loads(Path(ended["session_ref"]).read_text())["history"]
    return history


@pytest.mark.parametrize("engine", ["v1", "v2", "v3"])
def test_a_turn_is_recorded(repo: Repo, engine: str) -> None:
    """The session begins, its turn begins with the prompt and ends with the answer, its record has
    what was said and which files were written; the next process begins the next session."""
    assert repo.told("install-hooks")["hooks_installed"] > 0

    events = turn(repo, f"Add it\nsim: store={engine} write=src/a.py")
    again = turn(repo, f"Go on\nsim: store={engine} note=0", "--resume")

    start, began, *tools, ended = events
    assert start
    assert began
    assert ended
    assert [start["type"], began["type"], ended["type"]] == [1, 2, 3]
    assert tools == [None, None, None, None]  # before and after each of two
    assert began["prompt"].startswith("Add it\n")
    assert ended["response_message"].startswith("I have read **Add it**.")
    assert {event["session_id"] for event in events if event} == {start["session_id"]}
    at = ("--path", str(ended["session_ref"]), "--offset", "0")
    files = repo.told("extract-modified-files", *at)
    assert files["files"] == ["SORTIE_DEMO.md", "src/a.py"]
    prompts = repo.told(
        "extract-prompts", "--session-ref", str(ended["session_ref"]), "--offset", "0"
    )
    assert [prompt[:6] for prompt in prompts["prompts"]] == ["Add it"]
    kinds = [next(iter(entry["user"]["content"])) for entry in recorded(ended)]
    assert kinds == ["Prompt", "ToolUseResults", "ToolUseResults"]
    assert again[0]
    assert again[0]["session_id"] != start["session_id"]
