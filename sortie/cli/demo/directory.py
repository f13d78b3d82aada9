"""Make the directory of a demo, or find that it is one already."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from sortie.cli.gitignore import IGNORED, ignore_in_git
from sortie.cli.new_files import write_new
from sortie.model import SortieError

WORKFLOW = "WORKFLOW.md"
ISSUES = "issues"
ISSUE_FILES = tuple(f"DEMO-{number}.md" for number in range(1, 6))

_IGNORED = ("/workspaces/", "/data/")
"""Where its agents work, and where the simulator keeps its conversations."""

_MARK = b'a demo of Sortie, written by "sortie demo"'
_MARK_WITHIN = 1000  # bytes
_SIMULATOR = "sortie-kiro-sim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """The directory of a demo; ``made`` tells that it was written now."""

    directory: Path
    made: bool

    @property
    def workflow(self) -> Path:
        """Its WORKFLOW.md."""
        return self.directory / WORKFLOW


def simulator_command(python: str) -> tuple[str, ...]:
    """Return the command that starts the simulator installed beside an interpreter."""
    script = os.path.join(os.path.dirname(os.path.abspath(python)), _SIMULATOR)
    if os.access(script, os.X_OK) and os.path.isfile(script):
        return (script,)
    return (python, "-P", "-m", "sortie.kiro.simulator")


def make_demo(directory: Path) -> Demo:
    """Write a demo, or go on with the one that is there. Overwrites nothing.

    WORKFLOW.md is written last, so a directory with it is whole, and one without it, in which
    nothing but issues of a demo are, is finished. Raises SortieError for anything else.
    """
    try:
        if _is_demo(directory):
            return Demo(directory=directory, made=False)
        _require_room(directory)
        (directory / ISSUES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SortieError(
            f"cannot make a demo in {directory}: {error.strerror}; name another directory"
        ) from error
    ignore_in_git(directory, (*IGNORED, *_IGNORED))
    origin = files("sortie.cli.demo").joinpath("directory")
    for name in ISSUE_FILES:
        text = origin.joinpath(ISSUES, name).read_text(encoding="utf-8")
        write_new(directory / ISSUES / name, text)
    workflow = origin.joinpath(WORKFLOW).read_text(encoding="utf-8")
    command = json.dumps(list(simulator_command(sys.executable)))
    write_new(directory / WORKFLOW, workflow.replace("@COMMAND@", command))
    return Demo(directory=directory, made=True)


def _is_demo(directory: Path) -> bool:
    workflow = directory / WORKFLOW
    if not workflow.is_file():
        return False
    with workflow.open("rb") as file:
        return _MARK in file.read(_MARK_WITHIN)


def _require_room(directory: Path) -> None:
    others = _others(directory, [ISSUES, ".gitignore"]) or _others(directory / ISSUES, ISSUE_FILES)
    if others:
        raise SortieError(
            f"{directory} holds other things, such as {min(others)}, and is no demo; "
            "name an empty directory or one that does not exist"
        )


def _others(directory: Path, known: Collection[str]) -> list[str]:
    try:
        return [name for name in os.listdir(directory) if name not in known]
    except FileNotFoundError:
        return []
