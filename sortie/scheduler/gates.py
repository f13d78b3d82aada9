"""The gates between an issue and a run, in order; one code decides and explains.

A gate answers None where it is open, else a sentence that says why it is closed.
"""

from __future__ import annotations

from collections.abc import Callable

from sortie.model import Issue, state_key
from sortie.scheduler.candidates import GateVerdict
from sortie.scheduler.claims import (
    Claim,
    Cleaning,
    HandingOff,
    Held,
    Rechecking,
    Stopping,
    Waiting,
)
from sortie.scheduler.gate_view import View, view_of
from sortie.scheduler.host_gate import host_slot, host_troubles
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.timing import NO_SLOT

SPENT = "it had all its sessions"


def _complete(issue: Issue, _view: View) -> str | None:
    missing = [
        name for name in ("id", "identifier", "title", "state") if not getattr(issue, name).strip()
    ]
    return f"it has no {' and no '.join(missing)}" if missing else None


def _active(issue: Issue, view: View) -> str | None:
    if view.state.is_active(issue):
        return None
    kind = "terminal" if view.state.policy.is_terminal(issue) else "not active"
    return f"its state {issue.state} is {kind}"


def _labels(issue: Issue, view: View) -> str | None:
    required = view.state.policy_for(issue).required_labels
    if not required:
        return None
    missing = sorted(required - set(map(state_key, issue.labels)))
    return f"it lacks the label {', '.join(missing)}" if missing else None


def _trusted(issue: Issue, _view: View) -> str | None:
    trust = issue.trust
    return trust.distrust if trust is not None and trust.holds and trust.distrust else None


def _blockers(issue: Issue, view: View) -> str | None:
    terminal = view.state.policy.terminal_states
    open_ones = [
        f"{b.identifier} ({b.state or 'state unknown'})"
        for b in issue.blocked_by
        if b.state is None or state_key(b.state) not in terminal
    ]
    return f"it is blocked by {', '.join(open_ones)}" if open_ones else None


def _renamed(issue: Issue, view: View) -> str | None:
    """Keep a renamed issue from running while its former id is still claimed."""
    claimed = [former for former in issue.formerly if former in view.state.claims]
    if not claimed:
        return None
    return f"it seems to be {', '.join(claimed)} under another name, which is not let go of yet"


def _dispatch(_issue: Issue, view: View) -> str | None:
    state = view.state
    if state.draining:
        return "the daemon is stopping"
    if state.suspended is not None:
        return state.suspended
    if state.paused:
        return "dispatch is paused"
    if view.now < state.tracker_paused_until:
        return "the tracker wants to be left alone for a while"
    if view.now < state.no_dispatch_before:
        return "the tracker did not say how the issues stand that were chosen last"
    return state.store_error or state.skipped


def _agent(issue: Issue, view: View) -> str | None:
    state = view.state
    rule = state.rule_of(issue)
    hindrance = state.hindrances.get(rule)
    if hindrance is not None and not _may_probe(rule, view):
        return hindrance
    if state.shortage is not None and view.load.total:
        return state.shortage  # one run at a time may have enough
    return None


def _may_probe(rule: str, view: View) -> bool:
    """Tell whether one issue of a rule may be tried although its agent cannot be launched.

    Its failed run puts the error on record as a hold; the other issues wait meanwhile.
    """
    return not view.load.by_rule.get(rule) and rule not in view.lacking


def _usage_limit(issue: Issue, view: View) -> str | None:
    account = view.state.policy_for(issue).account
    limit = view.state.limits.of(account)
    if limit is None:
        return None
    chosen = view.load.total > view.state.claims.load.total
    if limit.backing_off or limit.probe is not None or account in view.rechecking or chosen:
        return limit.sentence
    if view.grant is not None and account in view.grant.kept_accounts:
        return limit.tried_elsewhere
    return None


def _daily_budget(_issue: Issue, view: View) -> str | None:
    return view.state.day_spent()


def _space(issue: Issue, view: View) -> str | None:
    state = view.state
    return state.space.issue_full(state.workspaces.of(issue.id), state.policy.space)


def _slot(issue: Issue, view: View) -> str | None:
    if view.load.total >= view.slots:
        own = view.load.total >= view.state.policy.max_concurrent_agents
        return NO_SLOT if own or view.grant is None else view.grant.sentence
    if _free_for(issue, view) <= 0:
        return f"{NO_SLOT}: those that are free are guaranteed to other rules"
    return None


def _free_for(issue: Issue, view: View) -> int:
    """Return how many slots an issue's rule may still have.

    Slots are guaranteed to rules out of the settings' own limit: a share of a process may be as
    small as what is wanted, so that no run would be started if they were kept out of that.
    """
    own, load, policy = view.state.rule_of(issue), view.load, view.state.policy
    kept = {rule.name: max(0, rule.guaranteed - load.by_rule[rule.name]) for rule in policy.rules}
    reserved = 0 if kept.get(own) else sum(kept.values())
    return min(view.slots, policy.max_concurrent_agents - reserved) - load.total


def _rule_slot(issue: Issue, view: View) -> str | None:
    name = view.state.rule_of(issue)
    rule = next((rule for rule in view.state.policy.rules if rule.name == name), None)
    if rule is None or rule.max_concurrent_agents is None:
        return None
    has, limit = view.load.by_rule[name], rule.max_concurrent_agents
    if has < limit:
        return None
    if has >= (rule.burst_to or limit):
        return f"{NO_SLOT} for rule {name}"
    if _free_for(issue, view) > view.others_wanting(name):
        return None
    return f"{NO_SLOT} for rule {name} beyond {limit}, as others wait for the free ones"


def _state_slot(issue: Issue, view: View) -> str | None:
    policy, bound_for = view.state.policy, view.state.policy_for(issue).in_progress_state
    if not policy.max_by_state:
        return None
    states = {state_key(issue.state)}
    if bound_for is not None:
        states.add(state_key(bound_for))
    for state in sorted(states):
        limit = policy.max_by_state.get(state)
        if limit is not None and view.load.by_state.get(state, 0) >= limit:
            return f"{NO_SLOT} for state {state}"
    return None


HOST_SLOT = "host slot"
USAGE_LIMIT = "usage limit"
DAILY_BUDGET = "daily budget"

Gate = Callable[[Issue, View], str | None]
FITNESS: tuple[tuple[str, Gate], ...] = (
    ("complete", _complete),
    ("state", _active),
    ("labels", _labels),
    ("trust", _trusted),
    ("blockers", _blockers),
)
"""Gates that only the issue itself can open."""

ROOM: tuple[tuple[str, Gate], ...] = (
    ("rename", _renamed),
    ("dispatch", _dispatch),
    ("agent", _agent),
    (USAGE_LIMIT, _usage_limit),
    (DAILY_BUDGET, _daily_budget),
    ("workspace size", _space),
    ("slot", _slot),
    ("rule slot", _rule_slot),
    ("state slot", _state_slot),
    (HOST_SLOT, host_slot),
)
"""Gates that Sortie opens as time goes by."""

SHARED = frozenset(
    {"dispatch", "agent", USAGE_LIMIT, DAILY_BUDGET, "slot", "rule slot", "state slot"}
)
"""Gates of ROOM that say the same of all issues in one state that one rule decides for. One that is
closed stays closed while issues are only chosen."""


def first_closed(
    gates: tuple[tuple[str, Gate], ...], issue: Issue, view: View
) -> GateVerdict | None:
    """Return the verdict of the first closed gate, or None where all are open."""
    for name, gate in gates:
        reason = gate(issue, view)
        if reason is not None:
            return GateVerdict(name, reason)
    return None


def closed(gates: tuple[tuple[str, Gate], ...], issue: Issue, view: View) -> str | None:
    """Return why the first closed gate is closed, or None where all are open."""
    verdict = first_closed(gates, issue, view)
    return None if verdict is None else verdict.reason


def judge_candidates(state: SchedulerState, now: float) -> None:
    """Set aside every candidate that only a change of its issue can start."""
    view = view_of(state, now)
    open_ones = state.candidates.open()
    verdicts = ((c.issue.id, first_closed(FITNESS, c.issue, view)) for c in open_ones)
    state.candidates.set_aside({i: verdict for i, verdict in verdicts if verdict is not None})


def explain(issue: Issue, state: SchedulerState, now: float) -> tuple[GateVerdict, ...]:
    """Return every gate's verdict on an issue, in the order in which they decide.

    The issue's own run does not count against its slots. The errors of troubled hosts are added
    only here, so that the reason of each waiting issue stays short.
    """
    view = view_of(state, now, besides=issue.id)
    verdicts = [GateVerdict(name, gate(issue, view)) for name, gate in FITNESS]
    verdicts.append(GateVerdict("claim", _claimed(state.claims.find(issue.id))))
    verdicts.append(GateVerdict("budget", spent_text(state, issue)))
    verdicts += [GateVerdict(name, gate(issue, view)) for name, gate in ROOM]
    last = verdicts[-1]
    if (
        last.gate == HOST_SLOT
        and last.reason is not None
        and (troubles := host_troubles(issue, state))
    ):
        verdicts[-1] = GateVerdict(HOST_SLOT, f"{last.reason}; {troubles}")
    return tuple(verdicts)


def spent_text(state: SchedulerState, issue: Issue) -> str | None:
    """Say that an issue may have no further run because of its budget, None where it may."""
    used = state.used_up(issue)
    if used is not None:
        return used.sentence
    return SPENT if state.over_budget(issue) else None


def _claimed(claim: Claim | None) -> str | None:
    match claim:
        case None:
            return None
        case Held():
            return f"it is held ({claim.reason}): {claim.detail}"
        case Waiting(due=False):
            return f"it waits for its {claim.kind} (after {claim.trigger})"
        case Waiting():
            return None  # it competes for a slot
        case HandingOff():
            return "it is being handed off"
        case Cleaning(kept=kept) if kept:
            return "its workspace is kept for the work in it"
        case Cleaning():
            return "its workspace is being removed"
        case Rechecking():
            return "it was chosen and is being re-read"
        case Stopping():
            return f"its run is being stopped ({claim.reason})"
        case _:
            return f"it runs ({claim.run_id})"
