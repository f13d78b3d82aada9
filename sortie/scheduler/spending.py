"""What follows when agents report what they have used: records, warnings, and stopped runs."""

from __future__ import annotations

from sortie import facts
from sortie.model import Issue, IssueId, RunId, Spending, StopReason
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.budgets import OF_DAY, OF_ISSUE, Used
from sortie.scheduler.claims import Running, Starting
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.waits import set_reason


def agent_used(state: SchedulerState, event: ev.SpendingReported, now: float) -> None:
    """Take in what a run has used so far; stop it where its issue may use no more."""
    claim = state.claims.worked_by(event.run_id)
    if claim is None:
        return
    state.in_hand = claim.issue
    _tell(state, event.run_id, claim.issue.id, event.spent)
    state.out.extend(state.ledger.record(event.run_id, now))
    if any(getattr(event.spent, name) for name in ("output_tokens", "credits", "cost_usd")):
        probe_worked(state, event.run_id)
    stop_if_spent(state, claim.issue.id)


def run_ended(state: SchedulerState, run_id: RunId, issue_id: IssueId, spent: Spending) -> None:
    """Take in what a run has used in the end, and record it."""
    _tell(state, run_id, issue_id, spent)
    state.out.extend(state.ledger.end(run_id))


def stop_if_spent(state: SchedulerState, issue_id: IssueId) -> None:
    """Stop an issue's run where the issue has used all that it may."""
    claim = state.claims.find(issue_id)
    if isinstance(claim, Starting | Running) and state.used_up(claim.issue) is not None:
        state.stop(claim, StopReason.BUDGET)


def begin_day(state: SchedulerState, event: ev.DayBegan, now: float) -> None:
    """Count what is used for another day from now on."""
    if event.day == state.day:
        return
    state.out.extend(state.ledger.record_all(now))
    for _, waiting in state.claims.due_in_order():
        set_reason(state, waiting, "")
    state.day = event.day
    state.ledger.today = event.spent
    state.out.append(rec.RecordDay(day=event.day))
    state.dispatch_needed = True


def _tell(state: SchedulerState, run_id: RunId, issue_id: IssueId, spent: Spending) -> None:
    ledger, policy = state.ledger, state.policy
    issue = state.in_hand
    per_issue = policy.per_issue if issue is None else state.policy_for(issue).per_issue
    issue_before, day_before = ledger.of_issue(issue_id), ledger.today
    ledger.tell(run_id, issue_id, spent)
    for used in per_issue.warnings(issue_before, ledger.of_issue(issue_id), OF_ISSUE):
        state.out.append(_low(used, issue))
    reached = policy.per_day.reached(ledger.today, OF_DAY)
    if reached is not None and policy.per_day.reached(day_before, OF_DAY) is None:
        used_text, limit = reached.used_text, reached.limit_text
        state.out.append(facts.BudgetSpent(key=reached.key, used=used_text, limit=limit))
        state.dispatch_needed = True  # waiting issues get the reason
        return
    for used in policy.per_day.warnings(day_before, ledger.today, OF_DAY):
        state.out.append(_low(used))


def _low(used: Used, issue: Issue | None = None) -> facts.BudgetRunsLow:
    return facts.BudgetRunsLow(
        key=used.key, used=used.used_text, limit=used.limit_text, issue=issue
    )


def limit_met(state: SchedulerState, event: ev.UsageLimitMet, now: float) -> None:
    """Start no run of an account until its usage limit is over."""
    limit = state.limits.met(
        event.account,
        event.message,
        now,
        resets_at=event.resets_at,
        seconds=event.seconds,
        met_here=bool(event.run_id),
    )
    if limit is None:
        return
    delay = limit.until - now
    state.out.append(
        rec.RecordLimit(
            account=limit.account,
            message=limit.message,
            delay=delay,
            resets_at=limit.resets_at,
            times=limit.times,
        )
    )
    state.out.append(
        facts.AgentLimited(
            agent=limit.agent, error=limit.message, seconds=delay, resets_at=limit.resets_at
        )
    )
    state.dispatch_needed = True  # waiting issues get the reason


def limit_passed(state: SchedulerState, account: str, now: float) -> None:
    """End a pause whose end has come by the time of day, as the machine has slept."""
    if state.limits.end_pause(account, now):
        state.dispatch_needed = True


def pass_limits(state: SchedulerState, now: float) -> None:
    """End the pauses and limits whose time has come."""
    changed, trusted = state.limits.pass_time(now)
    state.dispatch_needed |= changed
    for account in trusted:
        state.lift_limit(account, "a run works that has not met it")


def probe_worked(state: SchedulerState, run_id: RunId) -> None:
    """End the usage limit that a run was to try, as the run works."""
    account = state.limits.probed_by(run_id)
    if account is not None:
        state.lift_limit(account, "a run works that has not met it")


def probe_ended(state: SchedulerState, run_id: RunId, *, took_turns: bool) -> None:
    """Decide by the end of a run that met no usage limit whether the limit is over."""
    account = state.limits.probed_by(run_id)
    if account is None:
        return
    if took_turns:
        state.lift_limit(account, "a run ended that has not met it")
    else:
        state.limits.probe_ended(account)
        state.dispatch_needed = True
