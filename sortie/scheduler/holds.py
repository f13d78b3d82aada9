"""Holds: how an issue is parked, and what ends a hold.

Rule: a hold is on record before it counts. The baseline of a new hold is final once its issue was
read after the hold began.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from sortie import facts
from sortie.model import HoldReason, Issue, Spending
from sortie.scheduler.budgets import OF_ISSUE
from sortie.scheduler.claims import Held
from sortie.scheduler.policy import Policy
from sortie.scheduler.questions import read_issues, withdraw
from sortie.scheduler.records import ForgetHold, RecordHold
from sortie.scheduler.stages import forgive_hops, goes_in_circles
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.timing import CONFIGURATION_HOLDS, STOPPED

_FOUND = "the agent's program is found"


def hold(
    state: SchedulerState,
    issue: Issue,
    reason: HoldReason,
    detail: str,
    now: float,
    *,
    handoff_state: str | None = None,
) -> None:
    """Park an issue, and have it read for a baseline; see Held for ``handoff_state``."""
    held = Held(
        issue=issue,
        reason=reason,
        detail=detail,
        since=now,
        last_request=state.last_request,
        baseline_final=False,
        handoff_state=handoff_state,
    )
    state.out.append(record_of(held))
    state.keep_rule(issue)
    park(state, held)


def park(state: SchedulerState, held: Held) -> None:
    """Take over a hold that is on record, and have its issue read for a baseline.

    While the tracker wants to be left alone, the next reconciliation reads it.
    """
    state.claims[held.issue.id] = held
    state.dispatch_needed = True
    if not state.draining and held.since >= state.tracker_paused_until:
        state.out.append(read_issues(state, {held.issue.id}))


def record_of(held: Held) -> RecordHold:
    """Return what must be on record of a hold."""
    return RecordHold(
        issue=held.issue,
        reason=held.reason,
        detail=held.detail,
        baseline_final=held.baseline_final,
        handoff_state=held.handoff_state,
    )


def set_baseline(state: SchedulerState, claim: Held, issue: Issue) -> None:
    """Take what was read as the baseline of a hold."""
    baseline_final = state.claims[issue.id] = replace(claim, issue=issue, baseline_final=True)
    state.out.append(replace(record_of(baseline_final), again=True))


def hold_again(state: SchedulerState, claim: Held, now: float) -> None:
    """Turn another hold into an operator's; its baseline stays as it is."""
    if claim.reason is HoldReason.OPERATOR:
        return
    withdraw(state, claim, STOPPED)
    told = Held(issue=claim.issue, reason=HoldReason.OPERATOR, detail=STOPPED, since=now)
    held = replace(
        told,
        last_request=claim.last_request,
        missing_since=claim.missing_since,
        baseline_final=claim.baseline_final,
    )
    state.claims[claim.issue.id] = held
    state.out.append(record_of(held))


def hold_for_budget(state: SchedulerState, issue: Issue, now: float) -> None:
    """Park an issue that had all its sessions, or used all that it may."""
    used = state.used_up(issue)
    if used is not None:
        hold(state, issue, HoldReason.USAGE_BUDGET_EXHAUSTED, used.sentence, now)
    else:
        detail = f"it had {state.sessions[issue.id]} sessions, as many as agent.max_sessions allows"
        hold(state, issue, HoldReason.SESSION_BUDGET_EXHAUSTED, detail, now)


def hold_for_stages(state: SchedulerState, issue: Issue, now: float) -> bool:
    """Park an issue that goes from stage to stage without a person; tell whether it does."""
    detail = goes_in_circles(state, issue)
    if detail is not None:
        hold(state, issue, HoldReason.TOO_MANY_STAGES, detail, now)
    return detail is not None


def end_hold(
    state: SchedulerState, claim: Held, reason: str, *, keeps_budget: bool = False
) -> None:
    """Let an issue go that was parked, with a fresh budget unless it ``keeps_budget``."""
    withdraw(state, claim, reason)
    state.release(claim.issue.id)
    state.out.append(ForgetHold(issue_id=claim.issue.id))
    state.out.append(facts.HoldEnded(issue=claim.issue, reason=reason))
    if not keeps_budget:
        state.reset_budget(claim.issue.id)
    state.forget_crashes(claim.issue.id)
    if claim.reason is HoldReason.TOO_MANY_STAGES:
        forgive_hops(state, claim.issue)


def ended_by_reload(claim: Held, old: Policy, new: Policy, spent: Spending) -> bool:
    """Tell whether other settings end a hold; ``spent`` is what its issue has used."""
    if claim.reason is HoldReason.USAGE_BUDGET_EXHAUSTED:
        return new.per_issue.reached(spent, OF_ISSUE) is None
    if claim.reason is HoldReason.SESSION_BUDGET_EXHAUSTED:
        return new.max_sessions == 0 or new.max_sessions > old.max_sessions > 0
    if claim.reason is HoldReason.HANDOFF_FAILED:
        return old.handoff_state != new.handoff_state
    if claim.reason is HoldReason.INTERNAL_ERROR:  # no read ends it that shows no change
        return new.is_terminal(claim.issue) and not old.is_terminal(claim.issue)
    return claim.reason in CONFIGURATION_HOLDS


def program_appeared(state: SchedulerState, rules: Collection[str]) -> None:
    """Let go what was held because the program of the agent of these rules was missing."""
    for claim in state.claims.of_kind(Held):
        if claim.reason is HoldReason.AGENT_NOT_FOUND and state.rule_of(claim.issue) in rules:
            end_hold(state, claim, _FOUND)


def repaired(
    claim: Held, policy: Policy, sessions: int, spent: Spending, *, has_program: bool
) -> str | None:
    """Say what ends a hold at a start of the daemon, None where nothing does.

    ``policy`` is of the settings of now, ``sessions`` how many the issue had, ``spent`` what it
    used; ``has_program`` tells whether the agent's program was found.
    """
    match claim.reason:
        case HoldReason.AGENT_NOT_FOUND:
            return _FOUND if has_program else None
        case reason if reason in CONFIGURATION_HOLDS:
            return "the daemon was started anew"
        case HoldReason.SESSION_BUDGET_EXHAUSTED:
            had_all = 0 < policy.max_sessions <= sessions
            return None if had_all else "agent.max_sessions allows more sessions now"
        case HoldReason.USAGE_BUDGET_EXHAUSTED:
            still = policy.per_issue.reached(spent, OF_ISSUE)
            return "the settings allow it to use more now" if still is None else None
        case HoldReason.HANDOFF_FAILED:
            same = claim.handoff_state == policy.handoff_state
            return None if same else "tracker.handoff_state is another now"
        case _:
            return None
