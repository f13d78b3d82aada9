"""``sortie logs``: what a run has said and done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import LongFormat, Source
from sortie.cli.operator import IssueArgument
from sortie.cli.output import Format, emit, note, visible
from sortie.cli.parameters import option
from sortie.model.times import rfc3339

if TYPE_CHECKING:
    from sortie.store.readonly import Place
    from sortie.telemetry.transcripts import TranscriptLine


def logs(
    issue: IssueArgument,
    source: Source,
    follow: Annotated[
        bool,
        option("--follow", "-f", help="Go on until the run is over."),
    ] = False,
    run: Annotated[
        str | None,
        option(metavar="ID", help="Of this run of the issue; default: its newest."),
    ] = None,
    database: Annotated[
        Path | None,
        option("--db", metavar="FILE", help="Look beside this database; no workflow file."),
    ] = None,
    output: LongFormat = Format.TEXT,
) -> None:
    """Show what a run has said and done, whether or not a daemon runs.

    Each line tells when it came (UTC), in which turn, and what it is: output or stderr of the
    agent, a tool, a permission, a hook, a turn, or the run itself. With --format json it is an
    object on a line of its own. Of a run that is under way the last seconds may not be there yet.

    With --follow the command goes on until that run is over; it does not wait for the issue's next
    one.
    """
    from sortie.cli.transcripts import find

    place, rows = _database(source, database, issue)
    found = find(place, rows, issue, run)
    lines = found.followed() if follow else found.lines()
    _show(lines, found.run_id, output)
    for text in found.notes:
        note(text)


def _show(lines: Iterator[TranscriptLine], run_id: str, output: Format) -> None:
    from json import dumps

    from sortie.telemetry.transcripts import as_text

    for line in lines:
        if output is Format.JSON:
            emit(f"{dumps(_document(line, run_id))}\n")
        else:
            emit(f"{as_text(line, lambda text: visible(text, keep=chr(9)))}\n")


def _document(line: TranscriptLine, run_id: str) -> dict[str, str | int | None]:
    return {
        "run_id": run_id,
        "line": line.number,
        "at": rfc3339(line.at),
        "turn": line.turn,
        "kind": line.kind.value,
        "role": line.role,
        "text": line.text,
    }


def _database(source: Source, database: Path | None, issue: str) -> tuple[str, Place]:
    """Return the path that transcripts lie beside, and where the rows are."""
    if database is not None:
        return os.path.abspath(database), os.path.abspath(database)
    from sortie.cli.discovery import locate
    from sortie.cli.issue_workflow import workflow_with

    place = locate(workflow_with(source, issue))
    if place.guessed:
        note(f"looking beside {place.db_path}; --db FILE names another database")
    return place.db_path, place.database
