"""``sortie init``: a workflow file to begin with."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from shlex import quote
from urllib.parse import quote as quote_url

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
from sortie.cli.schema import schema_text
from sortie.model import SortieError

_SCHEMA = "WORKFLOW.schema.json"


def init(
    given: WorkflowArgument = None,
    named: WorkflowOption = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Write a commented workflow file to begin with; an existing file is never overwritten.

    Beside it a JSON Schema is written, by which editors complete and check it, and the .gitignore
    is made or extended, so that database, token and locks stay out of git.
    """
    workflow = workflow_of(given, named)
    if workflow.is_dir():
        raise SortieError(f"{workflow} is a directory; name a file, such as {workflow}/WORKFLOW.md")
    starter = files("sortie.cli").joinpath("starter.md").read_text(encoding="utf-8")
    schema = workflow.with_name(f"{workflow.stem}.schema.json")
    if not write_new(workflow, starter.replace(_SCHEMA, quote_url(schema.name))):
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
        emit(_next_steps(workflow))


def _next_steps(workflow: Path) -> str:
    name, issues = _quoted(workflow), _quoted(workflow.parent / "issues")
    argument = "" if workflow == DEFAULT_WORKFLOW else f" {name}"
    return f"""Wrote {name}. Next:
  1. Read it, and say in its prompt what your agent should do.
  2. Give it a first issue, a Markdown file in {issues}:
       mkdir -p {issues}
       printf -- '---\\ntitle: Say hello\\nstate: Todo\\n---\\nWrite hello.txt.\\n' \\
         > {issues}/TASK-1.md
  3. Install kiro-cli and set KIRO_API_KEY; or set agent.command to sortie-kiro-sim to try it out.
  4. sortie doctor{argument}      (says what is missing, and what to do about it)
     sortie run{argument} --dry-run
     sortie run{argument}
"""


def _quoted(path: Path) -> str:
    return one_line(quote(os.fspath(path)))
