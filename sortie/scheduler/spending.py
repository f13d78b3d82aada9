"""What follows from what agents use: records, warnings, and the end of runs that used too much."""

from __future__ import annotations

from sortie.model import IssueId, RunId, Spending, StopReason
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.allowance import OF_DAY, OF_ISSUE
from sortie.scheduler.claims import Running, Starting
from sortie.scheduler.decisions import BudgetLow
from sortie.scheduler.state import SchedulerState


def agent_used(state: SchedulerState, event: ev.AgentUsed, now: float) -> None:
    """Take in what a run has used so far; stop it where its issue may use no more."""
    claim = state.claims.worked_by(event.run_id)
    if claim is None:
        return
    state.in_hand = claim.issue
    _tell(state, event.run_id, claim.issue.id, event.spent)
    state.out.extend(state.ledger.record(event.run_id, now))
    stop_if_spent(state, claim.issue.id)


def run_ended(state: SchedulerState, run_id: RunId, issue_id: IssueId, spent: Spending) -> None:
    """Take in what a run has used in the end, and record it."""
    _tell(state, run_id, issue_id, spent)
    state.out.extend(state.ledger.end(run_id))


def stop_if_spent(state: SchedulerState, issue_id: IssueId) -> None:
    """Stop an issue's run where the issue has used all that it may."""
    claim = state.claims.find(issue_id)
    if isinstance(claim, Starting | Running) and state.used_up(issue_id) is not None:
        state.stop(claim, StopReason.BUDGET)


def begin_day(state: SchedulerState, event: ev.DayBegan, now: float) -> None:
    """Count what is used for another day from now on."""
    if event.day == state.day:
        return
    state.out.extend(state.ledger.record_all(now))
    state.day = event.day
    state.ledger.today = event.spent
    state.out.append(rec.RecordDay(day=event.day))
    state.unsettled = True


def _tell(state: SchedulerState, run_id: RunId, issue_id: IssueId, spent: Spending) -> None:
    ledger, policy = state.ledger, state.policy
    issue_before, day_before = ledger.of_issue(issue_id), ledger.today
    ledger.tell(run_id, issue_id, spent)
    for used in policy.per_issue.warnings(issue_before, ledger.of_issue(issue_id), OF_ISSUE):
        state.out.append(BudgetLow(used.key, used.used_text, used.limit_text, state.in_hand))
    for used in policy.per_day.warnings(day_before, ledger.today, OF_DAY):
        state.out.append(BudgetLow(used.key, used.used_text, used.limit_text))
