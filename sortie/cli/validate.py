"""``sortie validate``: everything that is wrong with a workflow file."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sortie.cli.arguments import OutputFormat, Source, Sources
from sortie.cli.output import Format, Json, emit, emit_json, emit_line, note, visible
from sortie.model import Problem, WorkflowError

if TYPE_CHECKING:
    from sortie.daemon.options import RunOptions

_WIDTH = 100
"""Characters of a line that are shown."""

_BEFORE = 60  # of them before the mark, where the line is longer
_WORD = re.compile(r"[\w.$-]+")


def excerpt_lines(problem: Problem) -> Iterator[str]:
    """Yield the line that a problem is about, and one that points into it."""
    if problem.excerpt is None:
        return
    text, at = problem.excerpt.text.rstrip(), problem.excerpt.column - 1
    if not text.strip():
        return
    at = min(at, len(text))
    start = max(0, at - _BEFORE) if len(text) > _WIDTH else 0
    before, after = text[start:at], text[at : start + _WIDTH]
    word = _WORD.match(after)
    before, after = (visible(part.replace("\t", " ")) for part in (before, after))
    cut = "…" if start else ""
    rest = "…" if start + _WIDTH < len(text) else ""
    mark = "^" * max(1, _columns(visible(word[0])) if word else 1)
    gutter = f"{problem.line:>5} | "
    yield f"{gutter}{cut}{before}{after}{rest}"
    yield f"{' ' * (len(gutter) - 2)}| {' ' * _columns(cut + before)}{mark}"


def _columns(text: str) -> int:
    """Return how wide a text is on a terminal."""
    return sum(
        0 if unicodedata.combining(character) else 1 + (_is_wide(character)) for character in text
    )


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


STDIN = Path("-")
_STDIN_NAME = "stdin"
MOST_READ = 2 << 20
"""Bytes of stdin that are read: more than any workflow file may have."""


def validate(
    source: Sources,
    output: OutputFormat = Format.TEXT,
) -> int:
    """Find every problem of a workflow file, its prompt and the overrides of its settings.

    Each is one line on stdout: FILE:LINE:COLUMN, the key, what is wrong and what is accepted. Below
    it stands the line of the file with a mark; secrets in it appear as ***. The exit code is 1
    where one of them is an error, and 0 where all are warnings. Paths on this machine are
    looked at, and nothing is made or asked of the tracker.

    With - the file is read from stdin, as one that stands in this directory. Of several files each
    is told about, as JSON in a document of its own.
    """
    return max(_validate(each, output) for each in source.each().values())


def _validate(source: Source, output: Format) -> int:
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
    from sortie.daemon.unusable_settings import unusable_settings
    from sortie.daemon.workflow_file import load_workflow

    options = _options(source)
    try:
        workflow = load_workflow(options)
    except WorkflowError as error:
        return error.problems
    found = (
        Problem(path=str(options.workflow), line=0, column=0, key=key, message=flaw)
        for key, flaw in unusable_settings(workflow.settings)
    )
    return (*workflow.warnings, *found)


def _options(source: Source) -> RunOptions:
    options = source.options()
    if source.workflow != STDIN:
        return options
    content = sys.stdin.buffer.read(MOST_READ) if sys.stdin is not None else b""
    return replace(options, workflow=Path(_STDIN_NAME), content=content)


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
    name = _STDIN_NAME if source.workflow == STDIN else source.workflow
    if errors:
        return f"sortie: {name} is not valid: {found}"
    return f"{name} is valid" + (f": {found}" if found else "")
