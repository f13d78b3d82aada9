"""``sortie explain``: why an issue runs, waits or does not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import OutputFormat, Source
from sortie.cli.format import between, place_text, utc
from sortie.cli.issue_workflow import issue_path, workflow_with
from sortie.cli.moments import moment
from sortie.cli.operator import IssueArgument
from sortie.cli.output import Format, columns, emit, emit_json, laid_out, note, one_line
from sortie.cli.parameters import option
from sortie.model import cut

if TYPE_CHECKING:
    from rich.table import Table

    from sortie.cli.discovery import DaemonPlace
    from sortie.model import SortieError
    from sortie.store import HistoryRow
    from sortie.web.issue import ExplanationView
    from sortie.web.runs import RunView
    from sortie.web.watches import WatchView

_STANDINGS = {"handing_off": "being handed off", "cleaning": "finished"}
_TEXT_LIMIT = 600
"""Characters that are shown of an issue's description, and of what an agent said."""
_RUNS = 5
"""Runs that are shown of an issue that no daemon has in hand."""


def explain(
    issue: IssueArgument,
    source: Source,
    at: Annotated[
        str | None,
        option(
            "--at",
            metavar="TIME",
            help="Tell how it stood then: 2026-11-28T03:12, 03:12 or 2h (ago); in UTC.",
        ),
    ] = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Show how an issue stands with the daemon: why it runs, waits, is held or is not started.

    Each gate between the issue and a run is shown, open or closed, in the order in which they
    decide; then what must happen before it runs next, and what a person can do. Of an issue that
    the daemon does not have in hand, or where no daemon runs, the last recorded runs are shown.
    With --at it is the same as of a time that the event log holds, with or without a daemon.
    """
    from sortie.cli.client import Refused, accepted, ask, understood
    from sortie.cli.discovery import NoDaemon, locate
    from sortie.web.issue import ExplanationView

    when = None if at is None else moment(at, datetime.now(UTC))
    place = locate(workflow_with(source, issue))
    if when is not None:
        _past_standing(place, issue, when, output)
        return
    path = f"/api/v1/{issue_path(issue)}/explain"
    try:
        answer = ask(place, place.daemon(), "GET", path)
        if answer.status == 404 and answer.message:
            raise Refused(answer.message.rstrip("."))
    except (NoDaemon, Refused) as error:
        _look_back(place, issue, error, output)
        return
    document = accepted(answer, place, f"explain {issue}").document
    view = understood(ExplanationView, document)
    if output is Format.JSON:
        emit_json(document)
    else:
        emit(explanation(view, datetime.now(UTC), columns()))


def _past_standing(place: DaemonPlace, issue: str, at: datetime, output: Format) -> None:
    """Show how an issue stood at a time. Raises EventLogError where that is not recorded."""
    from sortie.daemon.past import explain_past
    from sortie.model.times import rfc3339
    from sortie.web.state import to_json

    past = explain_past(place.db_path, issue, at)
    if past.warning is not None:
        note(f"sortie: {past.warning}")
    if output is Format.JSON:
        view = json.loads(to_json(past.view))
        times = {"at": rfc3339(past.at), "last_event_at": rfc3339(past.last_event_at)}
        emit_json({**times, "exact": past.warning is None, **view})
    else:
        emit(f"at {utc(at)}, as of {utc(past.last_event_at)}\n")
        emit(explanation(past.view, at, columns()))


def _look_back(place: DaemonPlace, issue: str, why: SortieError, output: Format) -> None:
    """Show what is recorded of an issue that no daemon has in hand; raises ``why`` if nothing."""
    from sortie.cli.history import as_json, listing
    from sortie.store.readonly import is_there, read_history
    from sortie.web.runs import past_detail, past_standing, run_view

    rows: Sequence[HistoryRow] = ()
    if is_there(place.database):
        rows = read_history(place.database, issue=issue, limit=_RUNS)
    if not rows:
        raise why
    if output is Format.JSON:
        runs = [as_json(row) for row in rows]
        last = run_view(rows[0])
        emit_json(
            {
                "issue_identifier": issue,
                "title": last.title,
                "description": last.description,
                "state": last.state,
                "standing": past_standing(last),
                "detail": past_detail(last),
                "runs": runs,
            }
        )
        return
    emit(_past(run_view(rows[0]), why, columns()))
    emit(listing(rows, columns()))


def _past(last: RunView, why: SortieError, width: int) -> str:
    """Return what people are told of an issue that no daemon has in hand."""
    from sortie.cli.discovery import NoDaemon
    from sortie.model import LOCAL
    from sortie.web.deliveries import delivery_lines
    from sortie.web.issue import WorkspaceView
    from sortie.web.runs import image_text, left_in_git, past_detail

    heading = f"{last.issue} ({last.state}): {last.title}" if last.title else last.issue
    lines = [str(why)] if isinstance(why, NoDaemon) else []
    lines += [heading, *_asks_for(last.description), past_detail(last)]
    git = left_in_git(last)
    # What is on another host is not looked at.
    if last.workspace and (last.host != LOCAL or os.path.isdir(last.workspace)):
        lines.append(f"workspace: {place_text(WorkspaceView(host=last.host, path=last.workspace))}")
    image = image_text(last.image, last.image_digest)
    lines += [f"image: {image}"] if image else []
    lines += [f"taken over {last.taken_over}"] if last.taken_over else []
    if last.delivery is not None:
        lines += delivery_lines(last.delivery)
    elif git is not None:
        lines.append(f"git: {git}")
    if last.answer:
        lines.append(f"the agent said last: {cut(last.answer, _TEXT_LIMIT)}")
    return laid_out(*(one_line(line) for line in lines), "", width=width)


def _asks_for(description: str | None) -> Sequence[str]:
    text = (description or "").strip()
    return [f"asks for: {cut(text, _TEXT_LIMIT)}"] if text else []


def explanation(view: ExplanationView, now: datetime, width: int) -> str:
    """Return what people are shown, the headline first, in ``width`` columns."""
    from rich.text import Text

    from sortie.web.deliveries import delivery_lines

    standing = _STANDINGS.get(view.standing, view.standing)
    since = f" since {utc(view.since)} ({between(view.since, now)})" if view.since else ""
    heading = [
        f"{view.issue_identifier} ({view.state}): {view.title}",
        *_asks_for(view.description),
        f"{standing}{since}: {view.detail}",
        _run(view),
        _failure(view, now),
    ]
    parts = [Text(one_line(line), overflow="fold") for line in heading if line]
    gates = _grid(3)
    for gate in view.gates:
        word = "open" if gate.reason is None else f"closed: {gate.reason}"
        gates.add_row("gate", Text(one_line(gate.gate)), Text(one_line(word), overflow="fold"))
    ways = _grid(2)
    ways.add_row("next", Text(one_line(_next(view, now)), overflow="fold"))
    if view.workspace is not None:
        where = place_text(view.workspace)
        ways.add_row("workspace", Text(one_line(where), overflow="fold"))
    if view.delivery is not None:
        for line in delivery_lines(view.delivery):
            ways.add_row("work", Text(one_line(line), overflow="fold"))
    if view.watch is not None:
        for line in _about_watch(view.watch, view.standing == "watched"):
            ways.add_row("watched", Text(one_line(line), overflow="fold"))
    if view.rule is not None or view.passed_over:
        ways.add_row("rule", view.rule or "none: the top level of the settings decides")
    for line in view.passed_over:
        ways.add_row("not", Text(one_line(line), overflow="fold"))
    for way in view.ways_out:
        ways.add_row("way out", Text(one_line(way), overflow="fold"))
    for budget in view.budgets:
        ways.add_row("tracker", Text(one_line(f"budget of {budget.words}"), overflow="fold"))
    text = laid_out(*parts, Text(), gates, Text(), ways, width=width)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _about_watch(watch: WatchView, gates_are_shown: bool) -> Iterator[str]:
    """Yield what is told of a watched pull request; its closed gates where no table has them."""
    from sortie.web.watches import watch_lines

    yield watch.standing.pull_request
    yield from watch_lines(watch)
    if not gates_are_shown:
        for gate in watch.gates:
            if gate.reason is not None:
                yield f"gate {gate.gate}: {gate.reason}"


def _grid(names: int) -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(names - 1):
        grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _run(view: ExplanationView) -> str:
    parts = (("run", view.run_id), ("turn", view.turn), ("attempt", view.attempt))
    return ", ".join(f"{name} {value}" for name, value in parts if value is not None)


def _failure(view: ExplanationView, now: datetime) -> str:
    failure = view.last_failure
    if failure is None:
        return ""
    kind = f"{failure.kind}: " if failure.kind else ""
    return (
        f"last failure {utc(failure.at)} ({between(failure.at, now)} ago): {kind}{failure.message}"
    )


def _next(view: ExplanationView, now: datetime) -> str:
    at = view.next_run_at
    if at is None:
        return view.next_step
    when = f"in {between(now, at)}" if at > now else "due"
    return f"{utc(at)} ({when}): {view.next_step}"
