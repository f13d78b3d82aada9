"""The screen of ``sortie status``: what the daemon does, for somebody who was paged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from sortie.cli.format import between, place_text, utc
from sortie.cli.output import laid_out, one_line
from sortie.cli.tables import Row, table
from sortie.model import Spending
from sortie.model.numbers import counted, credits_text, dollars_text, number_text, span, tokens_text
from sortie.model.spending import cost_text

if TYPE_CHECKING:
    from sortie.daemon.endpoint_file import DaemonEndpoint
    from sortie.web.issue import (
        CandidateView,
        FailureView,
        HeldView,
        KeptView,
        RunningView,
        WaitingView,
        WorkspaceView,
    )
    from sortie.web.state import HostView, StateView, UnnamedStateView

_BAD, _GOOD, _HEADING = "bold red", "bold green", "bold"
_MEANINGS = {
    "paused": "; no run is started until 'sortie resume'",
    "draining": "; it ends its runs and leaves",
}
_ADVICE = {
    "held": (
        "a hold ends with 'sortie retry ISSUE' or a change of the issue's state;\n"
        "'sortie explain ISSUE' says what else can be done"
    ),
    "kept": (
        "push what is in it, or remove the directory; 'sortie retry ISSUE' looks at once,\n"
        "and when its time is over the workspace is removed with all it holds"
    ),
}
"""What is said below a table."""

_SHOWN = 3
"""Queued or blocked issues that are shown; the rest is counted."""

_FAILURE_LIMIT = 300


class DaemonStatus(Struct, frozen=True, kw_only=True):
    """What was seen of a daemon; ``reasons`` say why it is not ready."""

    endpoint: DaemonEndpoint
    state: StateView
    ready: bool
    reasons: tuple[str, ...]


def screen(status: DaemonStatus, width: int) -> str:
    """Return the screen in ``width`` columns: what is wrong first, and nothing cut."""
    state = status.state
    parts = [_summary(status, width)]
    for name, columns, text, rows in _sections(state):
        if rows:
            parts.append(f"\n{laid_out(Text(name, _HEADING), width=width)}")
            parts.append(table(columns, rows, width, text=text))
        more = {"queued": state.counts.queued, "blocked": state.counts.blocked}.get(name, 0)
        if more > len(rows):
            parts.append(f"... and {more - len(rows)} more\n")
        if rows and name in _ADVICE:
            parts.append(laid_out(Text(_ADVICE[name]), width=width))
    return "".join(parts)


def _sections(state: StateView) -> Iterator[tuple[str, Sequence[str], str, Sequence[Row]]]:
    """Yield the tables: name, columns, column of the text, rows."""
    now = state.generated_at
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
        "held",
        ("issue", "reason", "since", "for"),
        "detail",
        [_held(view, now) for view in state.held],
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
    for name, text, style in _facts(status):
        found.add_row(Text(name, _HEADING), Text(one_line(text), style))
    return "".join(f"{line.rstrip()}\n" for line in laid_out(found, width=width).splitlines())


def _facts(status: DaemonStatus) -> Iterator[tuple[str, str, str]]:
    state, endpoint = status.state, status.endpoint
    readiness = "ready" if status.ready else "NOT READY"
    well = status.ready and state.status == "running"
    meaning = _MEANINGS.get(state.status, "")
    yield "status", f"{state.status}, {readiness}{meaning}", _GOOD if well else _BAD
    for reason in status.reasons:
        yield "", reason, ""
    if state.workflow.valid:
        yield "workflow", f"{state.workflow.path}, valid", ""
    else:
        broken = f"{state.workflow.path}, NOT VALID; the last good settings stay in force"
        yield "workflow", broken, _BAD
    for error in state.workflow.errors:
        yield "", error, ""
    counts, slots, totals = state.counts, state.slots, state.totals
    yield (
        "issues",
        f"{counts.running:,} running, {counts.waiting:,} waiting, {counts.held:,} held,"
        f" {counts.queued:,} queued, {counts.blocked:,} blocked",
        "",
    )
    yield from _tracker(state)
    if state.usage_limit is not None:
        yield "agent", f"{state.usage_limit.reason}: {state.usage_limit.message}", _BAD
    yield "slots", f"{slots.free} of {slots.total} free", ""
    for name, free in slots.by_state.items():
        yield "", f"{name}: {free} free", ""
    sums = [counted(totals.runs, "run"), counted(totals.turns, "turn")]
    if totals.credits is not None:
        sums.append(credits_text(totals.credits))
    if totals.tokens is not None:
        sums.append(tokens_text(totals.tokens))
    if totals.cost_usd is not None:
        cost = Spending(cost_usd=totals.cost_usd, estimated_usd=totals.estimated_usd)
        sums.append(cost_text(cost))
    yield "totals", ", ".join([*sums, f"{span(totals.seconds_running)} running"]), ""
    yield from _today(state)
    age = between(endpoint.started_at, state.generated_at)
    began = f"since {utc(endpoint.started_at)} ({age})"
    version = f"version {endpoint.version}, pid {endpoint.process.pid}"
    yield "daemon", f"{began}, {version}, {endpoint.url}", ""
    yield "seen", utc(state.generated_at), ""


def _today(state: StateView) -> Iterator[tuple[str, str, str]]:
    """Yield what was used today, of what may be."""
    today = state.today
    sums = []
    if today.credits is not None or today.daily_credits is not None:
        told = "credits not reported" if today.credits is None else credits_text(today.credits)
        sums.append(
            told + (f" of {number_text(today.daily_credits)}" if today.daily_credits else "")
        )
    if today.tokens is not None:
        sums.append(tokens_text(today.tokens))
    if today.cost_usd is not None or today.daily_cost_usd is not None:
        spent = Spending(cost_usd=today.cost_usd, estimated_usd=today.estimated_usd)
        told = "cost not reported" if today.cost_usd is None else cost_text(spent)
        limit = today.daily_cost_usd
        sums.append(told + (f" of {dollars_text(limit)}" if limit else ""))
    if sums:
        yield "today", f"{', '.join(sums)} ({today.day}, {today.timezone})", ""
    if today.exhausted is not None:
        yield "budget", today.exhausted, _BAD


def _tracker(state: StateView) -> Iterator[tuple[str, str, str]]:
    """Yield what the tracker holds and nobody works on, each with a hint where there is one."""
    name = "tracker"
    until = state.tracker.rests_until
    if until is not None:
        yield name, f"left alone until {utc(until)}: {state.tracker.rests_because}", _BAD
        name = ""
    for view in state.tracker.unnamed_states:
        yield name, _unnamed(view), _BAD if view.near else ""
        name = ""
    for message in state.tracker.unreadable:
        yield name, f"cannot be read: {message}", _BAD
        name = ""
    more = state.counts.unreadable - len(state.tracker.unreadable)
    if more > 0:
        yield name, f"... and {more} more that cannot be read", _BAD
        name = ""
    for budget in state.tracker.budgets:
        yield name, f"budget of {budget.words}", _BAD if budget.is_low else ""
        name = ""


def _unnamed(view: UnnamedStateView) -> str:
    if view.issues == 1:
        who = f"{view.first} is in {view.state}"
    else:
        who = f"{view.issues} issues are in {view.state} ({view.first} is one)"
    hint = f"; did you mean {view.near}?" if view.near else ""
    return f"{who}, which no setting names{hint}"


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
    return Row(cells, _joined(said, failure, f"in {view.workspace}" if view.workspace else ""))


def _waiting(view: WaitingView, now: datetime) -> Row:
    due = f"in {between(now, view.due_at)}" if view.due_at > now else "now"
    cells = (view.issue_identifier, view.kind, str(view.attempt), due)
    return Row(
        cells, _joined(view.reason or "", _failure(view.last_failure), _place(view.workspace))
    )


def _held(view: HeldView, now: datetime) -> Row:
    cells = (view.issue_identifier, view.reason, utc(view.since), between(view.since, now))
    failure = view.last_failure
    told = failure is not None and failure.message in view.detail
    return Row(
        cells, _joined(view.detail, "" if told else _failure(failure), _place(view.workspace))
    )


def _place(workspace: WorkspaceView | None) -> str:
    return "" if workspace is None else f"in {place_text(workspace)}"


def _kept_workspaces(view: KeptView) -> Iterator[Row]:
    for kept in view.workspaces:
        cells = (view.issue_identifier, kept.host, utc(view.until))
        yield Row(cells, f"{kept.path}: {kept.reason}")


def _kept(view: CandidateView) -> Row:
    return Row((view.issue_identifier, view.state), view.reason)


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
