"""What ``sortie status`` says of the daemon as a whole, before its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from sortie.cli.format import between, utc
from sortie.model import Spending
from sortie.model.numbers import counted, credits_text, dollars_text, number_text, span, tokens_text
from sortie.model.spending import cost_text

if TYPE_CHECKING:
    from sortie.daemon.endpoint_file import DaemonEndpoint
    from sortie.web.state import StateView, UnnamedStateView

BAD, GOOD = "bold red", "bold green"
StatusFact = tuple[str, str, str]

_MEANINGS = {
    "paused": "; no run is started until 'sortie resume'",
    "draining": "; it ends its runs and leaves",
}


class DaemonStatus(Struct, frozen=True, kw_only=True):
    """What was seen of a daemon; ``reasons`` say why it is not ready."""

    endpoint: DaemonEndpoint
    state: StateView
    ready: bool
    reasons: tuple[str, ...]


def status_facts(status: DaemonStatus) -> Iterator[StatusFact]:
    """Yield each fact: its name, "" for more of the one before; a sentence; and its style."""
    state, endpoint = status.state, status.endpoint
    readiness = "ready" if status.ready else "NOT READY"
    well = status.ready and state.status == "running"
    meaning = _MEANINGS.get(state.status, "")
    yield "status", f"{state.status}, {readiness}{meaning}", GOOD if well else BAD
    for reason in status.reasons:
        yield "", reason, ""
    if state.workflow.valid:
        yield "workflow", f"{state.workflow.path}, valid", ""
    else:
        broken = f"{state.workflow.path}, NOT VALID; the last good settings stay in force"
        yield "workflow", broken, BAD
    for error in state.workflow.errors:
        yield "", error, ""
    counts, slots, totals = state.counts, state.slots, state.totals
    yield (
        "issues",
        f"{counts.running:,} running, {counts.waiting:,} waiting, {counts.held:,} held,"
        f" {counts.queued:,} queued, {counts.blocked:,} blocked"
        + (f", {counted(counts.watched, 'pull request')} watched" if counts.watched else ""),
        "",
    )
    yield from _tracker(state)
    if state.usage_limit is not None:
        yield "agent", f"{state.usage_limit.reason}: {state.usage_limit.message}", BAD
    yield "slots", f"{slots.free} of {slots.total} free", ""
    for name, free in slots.by_state.items():
        yield "", f"{name}: {free} free", ""
    for share in slots.by_rule:
        yield "", f"rule {share.words}", ""
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
    yield from _notifications(state)
    yield from _leaders(state)
    age = between(endpoint.started_at, state.generated_at)
    began = f"since {utc(endpoint.started_at)} ({age})"
    version = f"version {endpoint.version}, pid {endpoint.process.pid}"
    yield "daemon", f"{began}, {version}, {endpoint.url}", ""
    yield "seen", utc(state.generated_at), ""


def _notifications(state: StateView) -> Iterator[StatusFact]:
    """Yield the targets for which something waits, or was given up."""
    name = "told"
    for target in state.notifications:
        if target.waiting or target.dead:
            yield name, target.words, "" if target.trouble is None else BAD
            name = ""


def _leaders(state: StateView) -> Iterator[StatusFact]:
    """Yield which daemon leads, and which others there are."""
    lease = state.lease
    if lease is None:
        return
    yield "leader", lease.sentence, BAD if lease.leader is None or lease.error else ""
    for daemon in state.daemons:
        if daemon.name != lease.leader:
            yield "", daemon.sentence, "" if daemon.alive else BAD


def _today(state: StateView) -> Iterator[StatusFact]:
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
        yield "budget", today.exhausted, BAD


def _tracker(state: StateView) -> Iterator[StatusFact]:
    """Yield what the tracker holds and nobody works on, each with a hint where there is one."""
    name = "tracker"
    until = state.tracker.rests_until
    if until is not None:
        yield name, f"left alone until {utc(until)}: {state.tracker.rests_because}", BAD
        name = ""
    for view in state.tracker.unnamed_states:
        yield name, _unnamed(view), BAD if view.near else ""
        name = ""
    for message in state.tracker.unreadable:
        yield name, f"cannot be read: {message}", BAD
        name = ""
    more = state.counts.unreadable - len(state.tracker.unreadable)
    if more > 0:
        yield name, f"... and {more} more that cannot be read", BAD
        name = ""
    for budget in state.tracker.budgets:
        yield name, f"budget of {budget.words}", BAD if budget.is_low else ""
        name = ""
    name = "webhooks"
    for webhook in state.tracker.webhooks:
        yield name, webhook.words, "" if webhook.is_well else BAD
        name = ""


def _unnamed(view: UnnamedStateView) -> str:
    if view.issues == 1:
        who = f"{view.first} is in {view.state}"
    else:
        who = f"{view.issues} issues are in {view.state} ({view.first} is one)"
    hint = f"; did you mean {view.near}?" if view.near else ""
    return f"{who}, which no setting names{hint}"
