"""``sortie export``: all recorded runs and days, a JSON object on each line."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from json import dumps
from typing import TYPE_CHECKING, Annotated, cast

from sortie.cli.arguments import Source
from sortie.cli.history import as_json
from sortie.cli.output import Json, emit
from sortie.cli.parameters import option
from sortie.model import RunId, SortieError

if TYPE_CHECKING:
    from sortie.store.readonly import Place

_PAGE = 200
_DAYS = 1_000_000


class ExportFormat(StrEnum):
    """How rows are written."""

    JSONL = "jsonl"


def export(
    source: Source,
    issue: Annotated[
        str | None,
        option("--issue", "-i", metavar="ISSUE", help="Runs of this issue only, and no days."),
    ] = None,
    output: Annotated[
        ExportFormat, option("--format", help="A JSON object on each line.")
    ] = ExportFormat.JSONL,
) -> None:
    """Write all that is recorded of runs and days, whether or not a daemon runs.

    A run has the fields of sortie history --format json, with "type": "run" and, where its work
    changed something, "diff"; newest first. Behind the runs stand days, with the fields of sortie
    stats --format json and "type": "day".
    """
    from sortie.cli.discovery import locate
    from sortie.store.readonly import is_there

    assert output is ExportFormat.JSONL  # there is no other yet
    place = locate(source)
    if not is_there(place.database):
        raise SortieError(f"there is no database {place.db_path} yet: no daemon has run here")
    for document in _documents(place.database, issue):
        emit(f"{dumps(document)}\n")


def _documents(database: Place, issue: str | None) -> Iterator[dict[str, Json]]:
    from sortie.store.readonly import read_daily, read_diff_of, read_history
    from sortie.web.runs import usage_day

    before: RunId | None = None
    while rows := read_history(database, issue=issue, limit=_PAGE, before=before):
        for row in rows:
            document = {"type": "run", **cast("dict[str, Json]", as_json(row))}
            has_diff = row.delivery is not None
            diff = read_diff_of(database, row.run_id) if has_diff else None
            yield document if diff is None else {**document, "diff": diff}
        before = rows[-1].run_id
    if issue is None:
        for day in read_daily(database, limit=_DAYS):
            yield {"type": "day", **cast("dict[str, Json]", usage_day(day))}
