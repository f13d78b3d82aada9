"""From what the scheduler decides to the facts that log and metrics are made of."""

from __future__ import annotations

from typing import assert_never

from sortie.model import WaitKind
from sortie.scheduler import Note, Record
from sortie.scheduler import decisions as do
from sortie.scheduler import records as rec
from sortie.telemetry import facts
from sortie.telemetry.facts import Fact


def fact_of_note(note: Note) -> Fact:
    """Return the fact that a note is about."""
    match note:
        case do.Reconciled(action, issue, reason):
            return facts.IssueReconciled(action=action, issue=issue, reason=reason)
        case do.WorkKept(issue, kept, seconds):
            return facts.WorkspaceKept(
                issue_id=issue.id,
                issue_identifier=issue.identifier,
                path=kept.workspace.path,
                host=kept.workspace.host,
                reason=kept.reason,
                seconds=seconds,
            )
        case do.Dropped(issue, outcome, reason):
            return facts.DispatchDropped(issue=issue, outcome=outcome, reason=reason)
        case do.WaitOver(issue, reason):
            return facts.WaitEnded(issue=issue, reason=reason)
        case do.HoldOver(issue, reason):
            return facts.HoldEnded(
                issue_id=issue.id, issue_identifier=issue.identifier, reason=reason
            )
        case do.HostResting(host, message, seconds):
            return facts.HostRested(host=host, error=message, seconds=seconds)
        case do.HostAbandoned(host):
            return facts.HostGivenUp(host=host)
        case do.HostRecovered(host):
            return facts.HostBack(host=host)
        case do.BudgetLow(key, used, limit, issue):
            return facts.BudgetRunsLow(key=key, used=used, limit=limit, issue=issue)
        case do.DayBudgetSpent(key, used, limit):
            return facts.BudgetSpent(key=key, used=used, limit=limit)
        case do.AgentLimited(agent, message, seconds, resets_at):
            return facts.AgentLimited(
                agent=agent, error=message, seconds=seconds, resets_at=resets_at
            )
        case do.AgentLimitOver(agent, reason):
            return facts.AgentLimitEnded(agent=agent, reason=reason)
        case _:
            assert_never(note)


def fact_of_record(record: Record) -> Fact | None:
    """Return the fact that a committed record makes true, or None where a sink needs none."""
    match record:
        case rec.RecordRetry(kind=WaitKind.HANDOFF, tries=0):
            return None  # the handoff is being made now; only trying again is a retry
        case rec.RecordRetry():
            attempt = record.tries if record.kind is WaitKind.HANDOFF else record.streak.failures
            return facts.RetryScheduled(
                issue=record.issue,
                kind=record.kind,
                trigger=record.trigger,
                attempt=attempt,
                delay=record.delay,
            )
        case rec.RecordHold(again=True):
            return None
        case rec.RecordHold(issue=issue, reason=reason, detail=detail):
            return facts.IssueHeld(issue=issue, reason=reason, detail=detail)
        case rec.RecordHandoff(issue=issue, state=state):
            return facts.IssueHandedOff(issue=issue, state=state)
        case rec.RecordPause(paused=paused):
            return facts.PauseChanged(paused=paused)
        case _:
            return None
