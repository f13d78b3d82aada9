"""The screen of ``sortie status``: what the daemon does, for somebody who was paged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from sortie.cli.format import between, place_text, utc
from sortie.cli.output import laid_out, one_line
from sortie.cli.status_facts import DaemonStatus, status_facts
from sortie.cli.tables import Row, table

if TYPE_CHECKING:
    from sortie.web.issue import (
        CandidateView,
        FailureView,
        HandedOffView,
        HeldView,
        KeptView,
        RunningView,
        WaitingView,
        WorkspaceView,
    )
    from sortie.web.state import HostView, StateView
    from sortie.web.watches import WatchedView

_HEADING = "bold"
_ADVICE = {
    "held": (
        "a hold ends with 'sortie retry ISSUE' or a change of the issue's state;\n"
        "'sortie explain ISSUE' says what else can be done"
    ),
    "kept": (
        "push what is in it, or remove the directory; 'sortie retry ISSUE' looks at once,\n"
        "and when its time is over the workspace is removed with all it holds"
    ),
    "pull requests": (
        "'sortie explain ISSUE' says what each gate of a merge waits for, and what was answered"
    ),
    "handed off": "'sortie diff ISSUE' shows what is to be reviewed",
}
"""What is said below a table."""

_SHOWN = 3
"""Queued or blocked issues that are shown; the rest is counted."""

_WATCHED = 12
"""Watched pull requests that are shown, those that need a person first; the rest is counted."""

_HANDED_OFF = 10
"""Issues that are shown of those handed off lately."""

_FAILURE_LIMIT = 300


def screen(status: DaemonStatus, width: int) -> str:
    """Return the screen in ``width`` columns: what is wrong first, and no text is cut."""
    state = status.state
    parts = [_summary(status, width)]
    for name, columns, text, rows in _sections(state):
        if rows:
            parts.append(f"\n{laid_out(Text(name, _HEADING), width=width)}")
            parts.append(table(columns, rows, width, text=text))
        more = {
            "queued": state.counts.queued,
            "blocked": state.counts.blocked,
            "handed off": len(state.handed_off),
            "pull requests": state.counts.watched,
        }.get(name, 0)
        if more > len(rows):
            parts.append(f"... and {more - len(rows)} more\n")
        if rows and name in _ADVICE:
            parts.append(laid_out(Text(_ADVICE[name]), width=width))
    return "".join(parts)


def _sections(state: StateView) -> Iterator[tuple[str, Sequence[str], str, Sequence[Row]]]:
    """Yield the tables, those that call for people first: name, columns, column of the text,
    rows."""
    now = state.generated_at
    yield (
        "held",
        ("issue", "reason", "since", "for"),
        "detail",
        [_held(view, now) for view in state.held],
    )
    yield (
        "pull requests",
        ("issue", "number", "stands", "since", "next look"),
        "waits for",
        [_watched(view, now) for view in state.watched[:_WATCHED]],
    )
    yield (
        "handed off",
        ("issue", "state", "when", "lines"),
        "to review",
        [_handed_off(view, now) for view in state.handed_off[:_HANDED_OFF]],
    )
    yield (
        "running",
        ("issue", "state", "phase", "turn", "attempt", "host", "for"),
        "last message",
        [_running(view, now) for view in state.running],
    )
    yield (
        "waiting",
        ("issue", "kind", "attempt", "due"),
        "reason",
        [_waiting(view, now) for view in state.waiting],
    )
    yield (
        "kept",
        ("issue", "host", "until"),
        "workspace",
        [row for view in state.kept for row in _kept_workspaces(view)],
    )
    yield "queued", ("issue", "state"), "reason", [_kept(v) for v in state.queued[:_SHOWN]]
    yield "blocked", ("issue", "state"), "reason", [_kept(v) for v in state.blocked[:_SHOWN]]
    yield (
        "hosts",
        ("host", "runs", "is"),
        "reason",
        [_host(view, now) for view in state.hosts],
    )


def _summary(status: DaemonStatus, width: int) -> str:
    found = Table.grid(padding=(0, 2, 0, 0))
    found.add_column(no_wrap=True)
    found.add_column(overflow="fold")
    for name, text, style in status_facts(status):
        found.add_row(Text(name, _HEADING), Text(one_line(text), style))
    return "".join(f"{line.rstrip()}\n" for line in laid_out(found, width=width).splitlines())


def _running(view: RunningView, now: datetime) -> Row:
    turn = "" if view.turn is None else str(view.turn)
    most = "" if view.max_turns is None else f"/{view.max_turns}"
    cells = (
        view.issue_identifier,
        view.state,
        view.phase,
        f"{turn}{most}" if turn else "",
        str(view.attempt),
        view.host,
        between(view.started_at, now),
    )
    said = view.last_message or ""
    failure = _failure(view.last_failure) if view.attempt else ""
    answers = f"answers {', '.join(view.reaction)}" if view.reaction else ""
    place = f"in {view.workspace}" if view.workspace else ""
    from sortie.web.runs import image_text

    image = image_text(view.image, view.image_digest)
    inside = f"image {image}" if image else ""
    note = f"notes: {view.note}" if view.note else ""
    return Row(cells, _joined(note, said, answers, failure, place, inside, _rule(view.rule)))


def _waiting(view: WaitingView, now: datetime) -> Row:
    due = f"in {between(now, view.due_at)}" if view.due_at > now else "now"
    cells = (view.issue_identifier, view.kind, str(view.attempt), due)
    return Row(
        cells,
        _joined(
            view.reason or "",
            _failure(view.last_failure),
            _place(view.workspace),
            _rule(view.rule),
        ),
    )


def _held(view: HeldView, now: datetime) -> Row:
    cells = (view.issue_identifier, view.reason, utc(view.since), between(view.since, now))
    failure = view.last_failure
    told = failure is not None and failure.message in view.detail
    return Row(
        cells,
        _joined(
            view.detail,
            "" if told else _failure(failure),
            _place(view.workspace),
            _rule(view.rule),
            _question(view),
        ),
    )


def _question(view: HeldView) -> str:
    """Return how the question of an issue is answered, and until when."""
    asked = view.question
    if asked is None:
        return ""
    options = "; ".join(f"{at}: {it}" for at, it in enumerate(asked.options, 1))
    chosen = f"options: {options}. " if options else ""
    until = (
        "" if asked.deadline is None else f", or at {utc(asked.deadline)} it is: {asked.default}"
    )
    return f"{chosen}answer with 'sortie answer {view.issue_identifier} TEXT'{until}"


def _rule(name: str | None) -> str:
    return "" if name is None else f"rule {name}"


def _place(workspace: WorkspaceView | None) -> str:
    return "" if workspace is None else f"in {place_text(workspace)}"


def _kept_workspaces(view: KeptView) -> Iterator[Row]:
    for kept in view.workspaces:
        cells = (view.issue_identifier, kept.host, utc(view.until))
        yield Row(cells, f"{kept.path}: {kept.reason}")


def _watched(view: WatchedView, now: datetime) -> Row:
    look = "now"
    if view.next_look_at is not None and view.next_look_at > now:
        look = f"in {between(now, view.next_look_at)}"
    cells = (
        view.issue_identifier,
        f"#{view.number}",
        view.words,
        f"{between(view.since, now)} ago",
        look,
    )
    return Row(cells, _joined(view.waits_for, view.pull_request, _rule(view.rule)))


def _handed_off(view: HandedOffView, now: datetime) -> Row:
    lines = "" if view.added is None else f"+{view.added} -{view.removed}"
    branch = "" if view.branch is None else f"branch {view.branch}"
    cells = (view.issue_identifier, view.state or "", f"{between(view.at, now)} ago", lines)
    return Row(cells, _joined(view.pull_request or "", branch))


def _kept(view: CandidateView) -> Row:
    cells = (view.issue_identifier, view.state)
    return Row(cells, _joined(view.reason, _rule(view.rule)))


def _host(view: HostView, now: datetime) -> Row:
    standing = "up" if view.up else "tried again"
    if view.rests_until is not None and view.rests_until > now:
        standing = f"rested for {between(now, view.rests_until)}"
    return Row((view.host, f"{view.used}/{view.slots}", standing), view.reason or "")


def _failure(failure: FailureView | None) -> str:
    """Say why something failed last, "" where it has not."""
    if failure is None:
        return ""
    message = failure.message
    if len(message) > _FAILURE_LIMIT:
        message = f"{message[:_FAILURE_LIMIT]}…"
    kind = f"{failure.kind}: " if failure.kind else ""
    return f"last failure: {kind}{message}"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
