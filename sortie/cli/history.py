"""``sortie history``: the runs that are recorded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, cast

from sortie.cli.arguments import NoWorkflowFile, OutputFormat, Source
from sortie.cli.format import utc
from sortie.cli.leaders import show_leaders
from sortie.cli.output import Format, Json, columns, emit, emit_json, note
from sortie.cli.parameters import WrongUsage, option
from sortie.model import LOCAL, RunId, SortieError, StoreError
from sortie.model.numbers import tokens_text, took
from sortie.model.spending import told_amounts

if TYPE_CHECKING:
    from sortie.store import HistoryRow
    from sortie.store.readonly import Place

_ERROR_LIMIT = 300
_NAME_LIMIT = 60
_IMAGE_LIMIT = 120
_COLUMNS = (
    "started",
    "took",
    "issue",
    "rule",
    "attempt",
    "status",
    "turns",
    "used",
    "files",
    "host",
    "image",
)
_SILENT: Mapping[str, Sequence[str]] = {
    "image": ("",),
    "host": (LOCAL, ""),
    "attempt": ("0",),
    "files": ("",),
    "used": ("",),
    "turns": (),
    "rule": ("",),
}
_RARE = ("rule", "files", "image")
"""The columns that are left out where no run has anything in them."""

_SPARED = tuple(_SILENT)
"""The columns that a narrow terminal does without, the first one first; and what says nothing."""


def history(
    source: Source,
    issue: Annotated[
        str | None,
        option(
            "--issue",
            "-i",
            metavar="ISSUE",
            help="Of this issue only.",
            completes="issue",
        ),
    ] = None,
    rule: Annotated[
        str | None,
        option(metavar="NAME", help="Of this rule only; default is the top level of the settings."),
    ] = None,
    limit: Annotated[
        int, option("--limit", "-n", least=1, most=1_000_000, metavar="N", help="At most N.")
    ] = 100,
    before: Annotated[
        str | None, option(metavar="RUN", help="Go on behind this run, given by its id.")
    ] = None,
    database: Annotated[
        Path | None,
        option("--db", metavar="FILE", help="Read this database; no workflow file is read."),
    ] = None,
    leaders: Annotated[
        bool, option("--leaders", help="Which daemons led the workflow, in place of its runs.")
    ] = False,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Show the recorded runs, newest first, whether or not a daemon runs.

    With --leaders it is which daemons have led the workflow, where store.url names a server; of the
    other options --limit counts, and --before is a token then.

    Where no daemon has run yet the history is empty, and a line on stderr says so. While the
    workflow file is broken or gone, its database is found as far as can be told.
    """
    from sortie.config.rules import DEFAULT_RULE

    if leaders:
        if database is not None or issue or rule:
            raise WrongUsage("--leaders needs no --issue, --rule or --db", parameter="--leaders")
        show_leaders(source, limit, before, output)
        return
    place = os.path.abspath(database) if database is not None else _database(source)
    try:
        rows = _read(
            place,
            issue=issue,
            limit=limit,
            before=RunId(before) if before else None,
            rule="" if rule == DEFAULT_RULE else rule,
        )
    except StoreError as error:
        if database is None:
            raise
        raise SortieError(str(error).replace("db_path", "--db")) from error
    if output is Format.JSON:
        emit_json([as_json(row) for row in rows])
        return
    if not rows:
        of_rule = f" by rule {rule}" if rule else ""
        note("no run is recorded" + (f" of {issue}" if issue else "") + of_rule)
        return
    emit(listing(rows, columns()))
    if len(rows) == limit:
        note(f"there may be more: --before {rows[-1].run_id}")


def _database(source: Source) -> Place:
    from sortie.cli.discovery import locate

    try:
        place = locate(source)
    except NoWorkflowFile as error:
        name = quote(os.fspath(source.workflow))
        raise SortieError(
            f"{error}; 'sortie history --issue {name}' shows the runs of one issue, --db FILE those"
            " of a database"
        ) from error
    if place.guessed:
        note(f"showing what is recorded in {place.db_path}; --db FILE names another database")
    return place.database


def _read(database: Place, **page: Any) -> Sequence[HistoryRow]:
    from sortie.store.readonly import is_there, read_history

    if not is_there(database):
        note(f"there is no database {database} yet: no daemon has run here")
        return ()
    return read_history(database, **page)


def as_json(row: HistoryRow) -> Json:
    """Return a run as programs get it."""
    from sortie.web.runs import run_document, run_view

    return cast("Json", run_document(run_view(row)))


def listing(rows: Sequence[HistoryRow], width: int) -> str:
    """Return a line for each run, and below it its error.

    Columns for which there is no room are told below their runs, as far as they say anything.
    """
    from sortie.cli.tables import Row, fits, table

    cells = [_cells(row) for row in rows]
    names = [n for n in _COLUMNS if n not in _RARE or any(of[n] for of in cells)]
    below: list[str] = []
    for name in ("", *_SPARED):
        below += [name] if name in names else []
        beside = [each for each in names if each not in below]
        lines = [Row([of[each] for each in beside]) for of in cells]
        if fits(beside, lines, width):
            break
    else:
        beside, below = names, []
    texts = [_below(row, of, below) for row, of in zip(rows, cells, strict=True)]
    return table(
        beside,
        [Row([of[each] for each in beside], text) for of, text in zip(cells, texts, strict=True)],
        width,
    )


def _cells(row: HistoryRow) -> dict[str, str]:
    from sortie.web.runs import image_text

    files = row.activity.files_modified
    more = "+" if row.activity.files_omitted else ""
    return {
        "started": utc(row.started_at),
        "took": took((row.finished_at - row.started_at).total_seconds()) if row.finished_at else "",
        "issue": _cut(row.issue, _NAME_LIMIT),
        "rule": _cut(row.rule, _NAME_LIMIT),
        "attempt": str(row.attempt),
        "status": row.status.value,
        "turns": str(row.turns),
        "used": _used(row),
        "files": "" if files is None else f"{len(files)}{more}",
        "host": _cut(row.host, _NAME_LIMIT),
        "image": _cut(image_text(row.image, row.image_digest) or "", _IMAGE_LIMIT),
    }


def _below(row: HistoryRow, cells: Mapping[str, str], names: Sequence[str]) -> str:
    """Return what is told below a run: cells that say something, and its error."""
    told = [f"{name} {cells[name]}" for name in names if cells[name] not in _SILENT[name]]
    return "; ".join(part for part in (", ".join(told), _error(row)) if part)


def _used(row: HistoryRow) -> str:
    """Return what a run used, as far as its agent told; nothing of one without a turn."""
    told = told_amounts(row.spent)
    if row.spent.tokens is None and row.tokens is not None:
        told.append(tokens_text(row.tokens))
    return ", ".join(told) or ("not reported" if row.turns else "")


def _error(row: HistoryRow) -> str:
    parts = (row.error_kind.value if row.error_kind else None, row.error)
    return _cut(": ".join(part for part in parts if part), _ERROR_LIMIT)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
