"""The screen of ``sortie status``: what the daemon does, for somebody who was paged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from sortie.cli.output import laid_out, one_line
from sortie.cli.times import between, local, span

if TYPE_CHECKING:
    from sortie.daemon.presence import Presence
    from sortie.web import HeldView, RunningView, StateView, WaitingView

_BAD, _GOOD, _HEADING = "bold red", "bold green", "bold"
_MEANINGS = {
    "paused": "; no run is started until 'sortie resume'",
    "draining": "; it ends its runs and leaves",
}
_NUMBERS = ("turn", "attempt", "for", "due")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was seen of a daemon; ``reasons`` say why it is not ready."""

    presence: Presence
    state: StateView
    ready: bool
    reasons: tuple[str, ...]


def screen(look: Look, width: int | None) -> str:
    """Return the screen; the longest texts are cut to the width, None is that of the terminal."""
    parts: list[Table | Text] = [_summary(look)]
    state = look.state
    sections: tuple[tuple[str, Sequence[str], Iterable[Sequence[str]]], ...] = (
        (
            "running",
            ("issue", "state", "phase", "turn", "attempt", "host", "for", "last message"),
            (_running(view, state.generated_at) for view in state.running),
        ),
        (
            "waiting",
            ("issue", "kind", "attempt", "due", "reason"),
            (_waiting(view, state.generated_at) for view in state.waiting),
        ),
        (
            "held",
            ("issue", "reason", "since", "for", "detail"),
            (_held(view, state.generated_at) for view in state.held),
        ),
    )
    for name, columns, rows in sections:
        table = _table(columns, rows)
        if table.row_count:
            parts += [Text(), Text(name, _HEADING), table]
    if state.held:
        parts.append(
            Text("a hold ends with 'sortie retry ISSUE' or a change of the issue's state;")
        )
        parts.append(Text("'sortie explain ISSUE' says what else can be done"))
    text = laid_out(*parts, width=width)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _summary(look: Look) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text, style in _facts(look):
        table.add_row(Text(name, _HEADING), Text(one_line(text), style))
    return table


def _facts(look: Look) -> Iterator[tuple[str, str, str]]:
    state, presence = look.state, look.presence
    readiness = "ready" if look.ready else "NOT READY"
    well = look.ready and state.status == "running"
    meaning = _MEANINGS.get(state.status, "")
    yield "status", f"{state.status}, {readiness}{meaning}", _GOOD if well else _BAD
    for reason in look.reasons:
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
        f"{counts.running} running, {counts.waiting} waiting, {counts.held} held",
        "",
    )
    yield "slots", f"{slots.free} of {slots.total} free", ""
    for name, free in (*slots.by_state.items(), *slots.by_host.items()):
        yield "", f"{name}: {free} free", ""
    sums = [f"{totals.runs} runs", f"{totals.turns} turns"]
    if totals.credits is not None:
        sums.append(f"{totals.credits:.2f} credits")
    if totals.tokens is not None:
        sums.append(f"{totals.tokens} tokens")
    yield "totals", ", ".join([*sums, f"{span(totals.seconds_running)} running"]), ""
    age = between(presence.started_at, state.generated_at)
    began = f"since {local(presence.started_at)} ({age})"
    version = f"version {presence.version}, pid {presence.process.pid}"
    yield "daemon", f"{began}, {version}, {presence.url}", ""
    yield "seen", local(state.generated_at), ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        # What can be wrapped is what rich makes narrower first; its cells then do not wrap.
        right = name in _NUMBERS
        table.add_column(name, no_wrap=name != columns[-1], justify="right" if right else "left")
    for row in rows:
        table.add_row(*(Text(one_line(c), no_wrap=True, overflow="ellipsis") for c in row))
    return table


def _running(view: RunningView, now: datetime) -> Sequence[str]:
    turn = "" if view.turn is None else str(view.turn)
    most = "" if view.max_turns is None else f"/{view.max_turns}"
    return (
        view.issue_identifier,
        view.state,
        view.phase,
        f"{turn}{most}" if turn else "",
        str(view.attempt),
        view.host,
        between(view.started_at, now),
        view.last_message or "",
    )


def _waiting(view: WaitingView, now: datetime) -> Sequence[str]:
    due = f"in {between(now, view.due_at)}" if view.due_at > now else "now"
    return view.issue_identifier, view.kind, str(view.attempt), due, view.reason or ""


def _held(view: HeldView, now: datetime) -> Sequence[str]:
    return (
        view.issue_identifier,
        view.reason,
        local(view.since),
        between(view.since, now),
        view.detail,
    )
