"""``sortie import``: a workflow file of another program as one of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import OutputFormat
from sortie.cli.new_files import write_new
from sortie.cli.output import Format, Json, emit, emit_json, emit_line, note
from sortie.cli.parameters import WrongUsage, argument, option
from sortie.model import SortieError, WorkflowError

if TYPE_CHECKING:
    from sortie.workflow.importing import Told

_PROGRAMS = ("go", "symphony")


def import_(
    file: Annotated[Path, argument(metavar="FILE", help="A workflow file of another program.")],
    written: Annotated[
        Path | None,
        option(
            "--output",
            "-o",
            metavar="WORKFLOW.md",
            help="Write the new file here, where none may be yet, and the report to stdout.",
        ),
    ] = None,
    program: Annotated[
        str | None,
        option(
            "--from",
            metavar="|".join(_PROGRAMS),
            help="Whose file it is; found out where it is not said.",
        ),
    ] = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Turn a workflow of Symphony, or of the Go program sortie-ai/sortie, into one of ours.

    The new file is printed, and what became of each key goes to stderr, a line for each with its
    place: kept, changed, added, or lost and what to do instead. Files that rules name as templates
    are read from beside FILE. With --format json both are printed as one object.
    """
    from sortie.workflow.files import FileRefused, read_text
    from sortie.workflow.importing import KeyOutcome, Program, import_workflow

    if program is not None and program not in _PROGRAMS:
        raise WrongUsage(f"is {' or '.join(_PROGRAMS)}, not {program!r}", parameter="--from")

    def template(name: str) -> str | None:
        path = file.parent / name
        if not path.resolve().is_relative_to(file.parent.resolve()):
            return None
        try:
            return read_text(path, str(path))
        except FileRefused:
            return None

    try:
        content = read_text(file, str(file))
    except FileRefused as error:
        raise WorkflowError((error.problem,)) from error
    made = import_workflow(content, str(file), Program(program) if program else None, template)
    if written is not None and not write_new(written, made.text):
        raise SortieError(f"{written} is there already and is never overwritten; name another file")
    lost = sum(each.outcome is KeyOutcome.LOST for each in made.told)
    if output is Format.JSON:
        emit_json(
            {
                "program": made.program,
                "because": made.because,
                "written": None if written is None else str(written),
                "text": made.text,
                "keys": [_row(each) for each in made.told],
            }
        )
        return
    say = note if written is None else emit_line
    if written is None:
        emit(made.text)
    for each in made.told:
        say(str(each))
    whose = f"a workflow of {made.program} ({made.because})"
    note(f"imported {file} as {whose}: {lost} lost; try 'sortie validate'")


def _row(told: Told) -> Json:
    return {
        "outcome": told.outcome,
        "path": told.place.source,
        "line": told.place.line or None,
        "column": told.place.column or None,
        "key": told.key,
        "to": told.to or None,
        "message": told.message or None,
    }
