"""Make the directory of a demo, or find that it is one already."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from importlib.resources import files
from io import StringIO
from pathlib import Path

from msgspec import Struct

from sortie.cli.demo.agent import DemoAgent, simulated_agent
from sortie.cli.demo.image import IMAGE, engine_program, seen_inside
from sortie.cli.demo.project import PROJECT, make_project
from sortie.cli.gitignore import IGNORED, ignore_in_git
from sortie.cli.new_files import write_new
from sortie.model import SortieError

WORKFLOW = "WORKFLOW.md"
ISSUES = "issues"
ISSUE_FILES = tuple(f"DEMO-{number}.md" for number in range(1, 6))

_IGNORED = ("/workspaces/", "/data/", f"/{PROJECT}/")
"""Where its agents work, and where the simulator keeps its conversations."""

_MARK = b'a demo of Sortie, written by "sortie demo"'
_MARK_WITHIN = 1000  # bytes


class Demo(Struct, frozen=True, kw_only=True):
    """The directory of a demo; ``made`` tells that it was written now."""

    directory: Path
    made: bool

    @property
    def workflow(self) -> Path:
        """Its WORKFLOW.md."""
        return self.directory / WORKFLOW


def make_demo(directory: Path, agent: DemoAgent | None = None, sandbox: str | None = None) -> Demo:
    """Write a demo for an agent (None: a simulated one), or go on with the one that is there.

    Overwrites nothing. ``sandbox`` is the wall around the agent, None for none: bubblewrap, or the
    engine of its containers.

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
    template = origin.joinpath(WORKFLOW).read_text(encoding="utf-8")
    template = _for_project(template, make_project(directory))
    template = _for_agent(template, agent or simulated_agent())
    write_new(
        directory / WORKFLOW, template.replace("@SANDBOX@", _sandbox_block(sandbox, directory))
    )
    return Demo(directory=directory, made=True)


def _for_project(template: str, project: Path | None) -> str:
    """Return a workflow with its repository, or without one where there is no git."""
    if project is not None:
        return template.replace("@PROJECT@", json.dumps(str(project), ensure_ascii=False))
    before, _, rest = template.partition("repository:")
    return before + rest.partition("\n\n")[2]


def _for_agent(template: str, agent: DemoAgent) -> str:
    """Return a workflow for an agent: its kind, its command and its block are all that differs."""
    from ruamel.yaml import YAML

    block = StringIO()
    if agent.block:
        YAML().dump(agent.block, block)
    command = agent.command if isinstance(agent.command, str) else list(agent.command)
    return (
        template.replace("@KIND@", agent.kind)
        .replace("@COMMAND@", json.dumps(command, ensure_ascii=False))
        .replace("@BLOCK@\n", block.getvalue())
    )


def _sandbox_block(kind: str | None, directory: Path) -> str:
    """Return the block of a sandbox, nothing for none. What simulates the agent may be installed
    apart from its interpreter, and has to be seen inside; in a container, all else as well."""
    if kind is None:
        return ""
    package = Path(__file__).resolve().parents[3]
    lines = ["sandbox:                          # what agents see and may change"]
    read: Sequence[str] = [str(package)]
    if kind == "bubblewrap":
        lines.append("  kind: bubblewrap")
    else:
        read, program = seen_inside(package), engine_program(kind, directory)
        lines += [
            "  kind: container",
            f"  engine: {json.dumps(program, ensure_ascii=False)}",
            f"  image: {IMAGE}",
            "  network: none",
        ]
    lines.append(f"  read: {json.dumps(read, ensure_ascii=False)}")
    lines.append("  write: [issues]                 # an agent closes its issue itself")
    return "\n".join([*lines, "", ""])


def _is_demo(directory: Path) -> bool:
    workflow = directory / WORKFLOW
    if not workflow.is_file():
        return False
    with workflow.open("rb") as file:
        return _MARK in file.read(_MARK_WITHIN)


def _require_room(directory: Path) -> None:
    others = _others(directory, [ISSUES, ".gitignore", PROJECT]) or _others(
        directory / ISSUES, ISSUE_FILES
    )
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
