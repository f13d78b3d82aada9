"""``sortie stats``: what runs used, by day and agent."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import OutputFormat, Source
from sortie.cli.output import Format, columns, emit, emit_json, note
from sortie.cli.parameters import option
from sortie.model import NOTHING, SortieError, Spending, StoreError
from sortie.model.numbers import number_text, took
from sortie.model.spending import cost_text

if TYPE_CHECKING:
    from sortie.store import DayRow
    from sortie.store.readonly import Place

NOT_REPORTED = "not reported"


def stats(
    source: Source,
    days: Annotated[
        int,
        option(
            "--days",
            "-n",
            least=1,
            most=100_000,
            metavar="N",
            help="The last N days that have any.",
        ),
    ] = 14,
    by_rule: Annotated[
        bool,
        option("--by-rule", help="By rule, of the runs on record that ended in the last N days."),
    ] = False,
    database: Annotated[
        Path | None,
        option("--db", metavar="FILE", help="Read this database; no workflow file is read."),
    ] = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Show what agents used on each of the last days, whether or not a daemon runs.

    A day is one of the zone in budget.timezone, and counts what was used on it; runs, turns and
    time are those of the runs that ended on it. What an agent does not tell is "not reported"; a
    cost that is reckoned from tokens is marked as estimated.
    """
    from sortie.store.readonly import is_there

    place = os.path.abspath(database) if database is not None else _database(source)
    if not is_there(place):
        note(f"there is no database {place} yet: no daemon has run here")
        if output is Format.JSON:
            emit_json([])
        return
    try:
        if by_rule:
            _show_rules(place, days, output)
            return
        rows = _read(place, days)
    except StoreError as error:
        if database is None:
            raise
        raise SortieError(str(error).replace("db_path", "--db")) from error
    if output is Format.JSON:
        from sortie.web.runs import usage_day

        emit_json([usage_day(row) for row in rows])
    elif rows:
        emit(listing(rows, columns()))
    else:
        note("no run has ended yet, and none under way has told that it used anything")


def _show_rules(database: Place, days: int, output: Format) -> None:
    from sortie.cli.tables import Row, table
    from sortie.config.rules import DEFAULT_RULE
    from sortie.store.readonly import read_by_rule
    from sortie.web.runs import usage_rule

    rows = read_by_rule(database, time.time() - days * 86_400.0)
    if output is Format.JSON:
        emit_json([usage_rule(row) for row in rows])
        return
    if not rows:
        note("no run has ended in this time")
        return
    names = ("rule", "runs", "turns", "took", "credits", "tokens", "cost")
    cells = (
        (row.rule or DEFAULT_RULE, *_amounts((row.runs, row.turns, row.seconds), row.spent))
        for row in rows
    )
    emit(table(names, [Row(each, "") for each in cells], columns()))


def _database(source: Source) -> Place:
    from sortie.cli.discovery import locate

    place = locate(source)
    if place.guessed:
        note(f"showing what is recorded in {place.db_path}; --db FILE names another database")
    return place.database


def _read(database: Place, days: int) -> Sequence[DayRow]:
    from sortie.store.readonly import read_daily

    return read_daily(database, limit=days)


def listing(rows: Sequence[DayRow], width: int) -> str:
    """Return a line for each day and agent, and one for all of them."""
    from sortie.cli.tables import Row, table

    names = ("day", "agent", "runs", "turns", "took", "credits", "tokens", "cost")
    lines = [
        _cells(row.day, row.agent, (row.runs, row.turns, row.seconds), row.spent) for row in rows
    ]
    sums = (
        sum(row.runs for row in rows),
        sum(row.turns for row in rows),
        sum(row.seconds for row in rows),
    )
    lines.append(_cells("all", "", sums, _total(row.spent for row in rows)))
    return table(names, [Row(cells, "") for cells in lines], width)


def _total(every: Iterable[Spending]) -> Spending:
    total = NOTHING
    for spent in every:
        total += spent
    return total


def _cells(day: str, agent: str, did: tuple[int, int, float], spent: Spending) -> tuple[str, ...]:
    return day, agent, *_amounts(did, spent)


def _amounts(did: tuple[int, int, float], spent: Spending) -> tuple[str, ...]:
    runs, turns, seconds = did
    return (
        str(runs),
        str(turns),
        took(seconds),
        NOT_REPORTED if spent.credits is None else number_text(spent.credits),
        NOT_REPORTED if spent.tokens is None else number_text(spent.tokens),
        NOT_REPORTED if spent.cost_usd is None else cost_text(spent),
    )
