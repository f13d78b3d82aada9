"""``sortie validate``: everything that is wrong with a workflow file."""

from __future__ import annotations

from collections.abc import Sequence

from sortie.cli.arguments import (
    EnvFile,
    OutputFormat,
    Source,
    WorkflowArgument,
    WorkflowOption,
)
from sortie.cli.excerpt import excerpt_lines
from sortie.cli.output import Format, Json, emit, emit_json, emit_line, note
from sortie.model import Problem, WorkflowError


def validate(
    workflow: WorkflowArgument = None,
    named: WorkflowOption = None,
    env_file: EnvFile = None,
    output: OutputFormat = Format.TEXT,
) -> int:
    """Find every problem of a workflow file, its prompt and the overrides of its settings.

    Each is one line on stdout: FILE:LINE:COLUMN, the key, what is wrong and what is accepted. Below
    it stands the line of the file with a mark; secrets in it appear as ***. The exit code is 1
    where one of them is an error, and 0 where all are warnings. Nothing is asked of the tracker.
    """
    source = Source.named(workflow, named, env_file)
    problems = _problems(source)
    errors = sum(problem.severity == "error" for problem in problems)
    if output is Format.JSON:
        emit_json({"valid": not errors, "problems": [_row(problem) for problem in problems]})
    else:
        for problem in problems:
            emit_line(str(problem))
            for line in excerpt_lines(problem):
                emit(f"{line}\n")
    note(_summary(source, errors, len(problems) - errors))
    return 1 if errors else 0


def _problems(source: Source) -> Sequence[Problem]:
    from sortie.daemon.loading import load_workflow

    try:
        return load_workflow(source.options()).warnings
    except WorkflowError as error:
        return error.problems


def _row(problem: Problem) -> Json:
    return {
        "path": problem.path,
        "line": problem.line or None,
        "column": problem.column or None,
        "key": problem.key or None,
        "message": problem.message,
        "severity": problem.severity,
    }


def _summary(source: Source, errors: int, warnings: int) -> str:
    found = ", ".join(
        f"{count} {name}{'' if count == 1 else 's'}"
        for count, name in ((errors, "error"), (warnings, "warning"))
        if count
    )
    if errors:
        return f"sortie: {source.workflow} is not valid: {found}"
    return f"{source.workflow} is valid" + (f": {found}" if found else "")
