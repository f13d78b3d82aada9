"""``sortie history``: the runs that are recorded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sortie.cli.arguments import (
    DEFAULT_WORKFLOW,
    EnvFile,
    OutputFormat,
    Source,
    WorkflowOption,
)
from sortie.cli.output import (
    UNLIMITED,
    Format,
    Json,
    emit,
    emit_json,
    laid_out,
    note,
    one_line,
    rfc3339,
)
from sortie.cli.times import local
from sortie.model import RunId

if TYPE_CHECKING:
    from rich.table import Table

    from sortie.store import HistoryRow

_ERROR_LIMIT = 300
_NAME_LIMIT = 60


def history(
    issue: Annotated[
        str | None, typer.Option("--issue", "-i", metavar="ISSUE", help="Of this issue only.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1_000_000, metavar="N", help="At most N.")
    ] = 100,
    before: Annotated[
        str | None, typer.Option(metavar="RUN", help="Go on behind this run, given by its id.")
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option("--db", metavar="FILE", help="Read this database; no workflow file is read."),
    ] = None,
    workflow: WorkflowOption = DEFAULT_WORKFLOW,
    env_file: EnvFile = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Show the recorded runs, newest first, whether or not a daemon runs.

    Where no daemon has run yet the history is empty, and a line on stderr says so. While the
    workflow file is broken or gone, its database is found as far as can be told.
    """
    source = Source(workflow=workflow, env_file=env_file)
    path = os.path.abspath(database) if database is not None else _database(source)
    rows = _read(path, issue, limit, RunId(before) if before else None)
    if output is Format.JSON:
        emit_json([_row(row) for row in rows])
        return
    if not rows:
        note("no run is recorded" + (f" of {issue}" if issue else ""))
        return
    emit(_listing(rows))
    if len(rows) == limit:
        note(f"there may be more: --before {rows[-1].run_id}")


def _database(source: Source) -> str:
    from sortie.cli.finding import locate

    place = locate(source)
    if place.guessed:
        note(f"showing what is recorded in {place.db_path}; --db FILE names another database")
    return place.db_path


def _read(path: str, issue: str | None, limit: int, before: RunId | None) -> Sequence[HistoryRow]:
    from sortie.store.readonly import read_history

    if not os.path.lexists(path):
        note(f"there is no database {path} yet: no daemon has run here")
        return ()
    return read_history(path, issue=issue, limit=limit, before=before)


def _row(row: HistoryRow) -> Json:
    return {
        "run_id": row.run_id,
        "issue": row.issue,
        "issue_id": row.issue_id,
        "attempt": row.attempt,
        "status": row.status,
        "error_kind": row.error_kind,
        "error": row.error,
        "turns": row.turns,
        "credits": row.credits,
        "host": row.host,
        "workspace": row.workspace,
        "agent": row.agent,
        "started_at": rfc3339(row.started_at),
        "finished_at": rfc3339(row.finished_at) if row.finished_at else None,
    }


def _listing(rows: Sequence[HistoryRow]) -> str:
    """Return a line for each run, and below it one for its error, whatever the width."""
    heading, *lines = laid_out(_table(rows), width=UNLIMITED).splitlines()
    listing = [heading.rstrip()]
    for row, line in zip(rows, lines, strict=True):
        listing.append(line.rstrip())
        if error := _error(row):
            listing.append(f"    {one_line(error)}")
    return "\n".join(listing) + "\n"


def _table(rows: Sequence[HistoryRow]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("started", "took", "issue", "attempt", "status", "turns", "credits", "host"):
        right = name in ("took", "attempt", "turns", "credits")
        table.add_column(name, no_wrap=True, justify="right" if right else "left")
    for row in rows:
        cells = (
            local(row.started_at),
            _duration(row),
            _cut(row.issue, _NAME_LIMIT),
            str(row.attempt),
            row.status.value,
            str(row.turns),
            "" if row.credits is None else f"{row.credits:.2f}",
            _cut(row.host, _NAME_LIMIT),
        )
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    return table


def _duration(row: HistoryRow) -> str:
    if row.finished_at is None:
        return ""
    seconds = max(0.0, (row.finished_at - row.started_at).total_seconds())
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, left = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{left:02}s"


def _error(row: HistoryRow) -> str:
    parts = (row.error_kind.value if row.error_kind else None, row.error)
    return _cut(": ".join(part for part in parts if part), _ERROR_LIMIT)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
