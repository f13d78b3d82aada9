"""The gates between an issue and a run, in order; one code decides and explains.

A gate answers None where it is open, else a sentence that says why it is closed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from sortie.model import HoldReason, Issue, state_key
from sortie.scheduler.book import Book
from sortie.scheduler.claims import (
    WORKED,
    Claim,
    Cleaning,
    HandingOff,
    Held,
    Rechecking,
    Starting,
    Waiting,
)
from sortie.scheduler.policy import Policy
from sortie.scheduler.rules import NO_SLOT


class Load:
    """How much is running: everything that a worker stands behind or is about to."""

    __slots__ = ("by_host", "by_state", "total")

    def __init__(self, book: Book) -> None:
        self.total = 0
        self.by_state: Counter[str] = Counter()
        self.by_host: Counter[str] = Counter()
        for claim in book.claims.values():
            if isinstance(claim, Rechecking):
                self.add(claim.issue, claim.host, book.policy.in_progress_state)
            elif isinstance(claim, WORKED):
                bound_for = claim.bound_for if isinstance(claim, Starting) else None
                self.add(claim.issue, claim.host, bound_for)

    def add(self, issue: Issue, host: str, bound_for: str | None) -> None:
        """Count one more; ``bound_for`` is a second state in which it needs a slot."""
        self.total += 1
        self.by_host[host] += 1
        states = {state_key(issue.state)}
        if bound_for is not None:
            states.add(state_key(bound_for))
        for state in states:
            self.by_state[state] += 1


@dataclass(frozen=True, slots=True)
class View:
    """What the gates look at."""

    book: Book
    load: Load


def _complete(issue: Issue, _view: View) -> str | None:
    missing = [
        name for name in ("id", "identifier", "title", "state") if not getattr(issue, name).strip()
    ]
    return f"it has no {' and no '.join(missing)}" if missing else None


def _active(issue: Issue, view: View) -> str | None:
    if view.book.policy.is_active(issue):
        return None
    kind = "terminal" if view.book.policy.is_terminal(issue) else "not active"
    return f"its state {issue.state} is {kind}"


def _labels(issue: Issue, view: View) -> str | None:
    required = view.book.policy.required_labels
    if not required:
        return None
    missing = sorted(required - set(map(state_key, issue.labels)))
    return f"it lacks the label {', '.join(missing)}" if missing else None


def _blockers(issue: Issue, view: View) -> str | None:
    terminal = view.book.policy.terminal_states
    open_ones = [
        f"{b.identifier} ({b.state or 'state unknown'})"
        for b in issue.blocked_by
        if b.state is None or state_key(b.state) not in terminal
    ]
    return f"it is blocked by {', '.join(open_ones)}" if open_ones else None


def _dispatch(_issue: Issue, view: View) -> str | None:
    book = view.book
    if book.draining:
        return "the daemon is stopping"
    if book.paused:
        return "dispatch is paused"
    return book.skipped


def _agent(_issue: Issue, view: View) -> str | None:
    book = view.book
    if book.hindrance is None or _may_probe(book):
        return None
    return book.hindrance


def _may_probe(book: Book) -> bool:
    """Tell whether one issue may be tried although no agent can be launched.

    It puts the fault on record, with a hold that names it; the other issues wait meanwhile.
    """
    return not any(
        isinstance(c, (*WORKED, Rechecking))
        or (isinstance(c, Held) and c.reason is HoldReason.AGENT_NOT_FOUND)
        for c in book.claims.values()
    )


def _slot(_issue: Issue, view: View) -> str | None:
    return None if view.load.total < view.book.policy.max_concurrent_agents else NO_SLOT


def _state_slot(issue: Issue, view: View) -> str | None:
    policy = view.book.policy
    if not policy.max_by_state:
        return None
    states = {state_key(issue.state)}
    if policy.in_progress_state is not None:
        states.add(state_key(policy.in_progress_state))
    for state in sorted(states):
        limit = policy.max_by_state.get(state)
        if limit is not None and view.load.by_state[state] >= limit:
            return f"{NO_SLOT} for state {state}"
    return None


def _host_slot(_issue: Issue, view: View) -> str | None:
    return None if free_host(view.book.policy, view.load) is not None else f"{NO_SLOT} on any host"


def free_host(policy: Policy, load: Load) -> str | None:
    """Return the least loaded host that may run one more agent."""
    hosts = [
        host
        for host in policy.hosts
        if policy.max_per_host is None or load.by_host[host] < policy.max_per_host
    ]
    return min(hosts, key=lambda host: load.by_host[host], default=None)


Gate = Callable[[Issue, View], str | None]
FITNESS: tuple[tuple[str, Gate], ...] = (
    ("complete", _complete),
    ("state", _active),
    ("labels", _labels),
    ("blockers", _blockers),
)
"""Gates that only the issue itself can open."""

ROOM: tuple[tuple[str, Gate], ...] = (
    ("dispatch", _dispatch),
    ("agent", _agent),
    ("slot", _slot),
    ("state slot", _state_slot),
    ("host slot", _host_slot),
)
"""Gates that Sortie opens as time goes by."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one gate says of an issue; ``reason`` is None where it is open."""

    gate: str
    reason: str | None


def first_closed(gates: tuple[tuple[str, Gate], ...], issue: Issue, view: View) -> Verdict | None:
    """Return the verdict of the first closed gate, or None where all are open."""
    for name, gate in gates:
        reason = gate(issue, view)
        if reason is not None:
            return Verdict(name, reason)
    return None


def closed(gates: tuple[tuple[str, Gate], ...], issue: Issue, view: View) -> str | None:
    """Return why the first closed gate is closed, or None where all are open."""
    verdict = first_closed(gates, issue, view)
    return None if verdict is None else verdict.reason


def explain(issue: Issue, book: Book) -> tuple[Verdict, ...]:
    """Return every gate's verdict on an issue, in the order in which they decide."""
    view = View(book, Load(book))
    verdicts = [Verdict(name, gate(issue, view)) for name, gate in FITNESS]
    verdicts.append(Verdict("claim", _claimed(book.claims.get(issue.id))))
    budget = "it had all its sessions" if book.over_budget(issue.id) else None
    verdicts.append(Verdict("budget", budget))
    verdicts += [Verdict(name, gate(issue, view)) for name, gate in ROOM]
    return tuple(verdicts)


def _claimed(claim: Claim | None) -> str | None:
    match claim:
        case None:
            return None
        case Held():
            return f"it is held ({claim.reason}): {claim.detail}"
        case Waiting():
            return f"it waits for its {claim.kind}"
        case HandingOff():
            return "it is being handed off"
        case Cleaning():
            return "its workspace is being removed"
        case Rechecking():
            return "it was chosen and is being re-read"
        case _:
            return f"it runs ({claim.run_id})"
