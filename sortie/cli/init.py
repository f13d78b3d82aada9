"""``sortie init``: a workflow file to begin with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote as quote_url

from msgspec import Struct

from sortie.cli.arguments import (
    DEFAULT_WORKFLOW,
    OutputFormat,
    WorkflowArgument,
    WorkflowOption,
    workflow_of,
)
from sortie.cli.gitignore import IGNORED, ignore_in_git
from sortie.cli.new_files import write_new
from sortie.cli.output import Format, emit, emit_json, note, one_line
from sortie.cli.parameters import option
from sortie.cli.schema import schema_text
from sortie.model import SortieError

if TYPE_CHECKING:
    from sortie.adapters import Adapters

_AGENT = "agent:"


class Starter(Struct, frozen=True, kw_only=True):
    """A workflow file to begin with; ``first`` is what is to be done before it is of use."""

    text: str
    first: Sequence[str]


def starter(agent: str, tracker: str) -> Starter:
    """Return the workflow file for these kinds. Raises SortieError where one is not there."""
    from sortie.agents import ADAPTERS as agents
    from sortie.trackers import ADAPTERS as trackers

    of_tracker, for_tracker = _lines(trackers, "tracker", tracker)
    of_agent, for_agent = _lines(agents, "agent", agent)
    head, _, block = of_agent.partition("\n\n")
    command = head.removeprefix(_AGENT).strip("\n")
    parts = {
        "@TRACKER@": of_tracker or f"tracker:\n  kind: {tracker}",
        "  kind: @AGENT@": "\n".join(part for part in (f"  kind: {agent}", command) if part),
        "@BLOCK@\n": f"\n{block}\n" if block else "",
    }
    text = files("sortie.cli").joinpath("starter.md").read_text(encoding="utf-8")
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return Starter(text=text, first=(*for_tracker, *for_agent))


def _lines(adapters: Adapters[Any], option: str, kind: str) -> tuple[str, Sequence[str]]:
    """Return the settings of a kind, "" of one that has none to offer, and what to do first."""
    try:
        adapters.load(kind)
    except LookupError as error:
        raise SortieError(f"--{option} {kind}: {error.args[0]}") from error
    if kind not in adapters.built_in:
        return "", ()
    folder = files(f"sortie.{option}s").joinpath(kind.replace("-", "_"))
    lines = folder.joinpath("starter.yaml").read_text(encoding="utf-8").splitlines()
    first = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    return "\n".join(line for line in lines if not line.startswith("# ")), first


_SCHEMA = "WORKFLOW.schema.json"
_FILES = "file"  # the tracker whose issues are made by hand


def init(
    given: WorkflowArgument = None,
    named: WorkflowOption = None,
    agent: Annotated[
        str, option(metavar="KIND", help="Write it for this agent, as in agent.kind.")
    ] = "kiro",
    tracker: Annotated[
        str, option(metavar="KIND", help="Write it for this tracker, as in tracker.kind.")
    ] = "file",
    output: OutputFormat = Format.TEXT,
) -> None:
    """Write a commented workflow file to begin with; an existing file is never overwritten.

    Nothing is asked: --agent and --tracker say for which it is. Beside it a JSON Schema is written,
    by which editors complete and check it, and the .gitignore is made or extended, so that
    database, token, locks and sortie.env, where secrets are kept, stay out of git.
    """
    workflow = workflow_of(() if given is None else (given,), named)
    if workflow.is_dir():
        raise SortieError(f"{workflow} is a directory; name a file, such as {workflow}/WORKFLOW.md")
    made = starter(agent, tracker)
    schema = workflow.with_name(f"{workflow.stem}.schema.json")
    if not write_new(workflow, made.text.replace(_SCHEMA, quote_url(schema.name))):
        raise SortieError(
            f"{workflow} is there already and is never overwritten; name another file, or move it"
        )
    written = [workflow]
    try:
        if write_new(schema, schema_text()):
            written.append(schema)
    except SortieError as error:
        note(f"sortie: {error}; 'sortie schema' prints it")
    try:
        ignore_in_git(workflow.parent, IGNORED)
    except SortieError as error:
        note(f"sortie: {error}")
    if output is Format.JSON:
        emit_json({"written": [str(path) for path in written]})
    else:
        emit(_next_steps(workflow, made, with_files=tracker == _FILES))


def _next_steps(workflow: Path, made: Starter, *, with_files: bool) -> str:
    name, issues = _quoted(workflow), _quoted(workflow.parent / "issues")
    argument = "" if workflow == DEFAULT_WORKFLOW else f" {name}"
    steps = ["Read it, and say in its prompt what your agent should do."]
    if with_files:
        steps.append(
            f"""Give it a first issue, a Markdown file in {issues}:
       mkdir -p {issues}
       printf -- '---\\ntitle: Say hello\\nstate: Todo\\n---\\nWrite hello.txt.\\n' \\
         > {issues}/TASK-1.md"""
        )
    steps += made.first
    steps.append(
        f"""sortie doctor{argument}      (says what is missing, and what to do about it)
     sortie run{argument} --dry-run
     sortie run{argument}"""
    )
    listed = "\n".join(f"  {number}. {step}" for number, step in enumerate(steps, 1))
    return f"Wrote {name}. Next:\n{listed}\n"


def _quoted(path: Path) -> str:
    return one_line(quote(os.fspath(path)))
