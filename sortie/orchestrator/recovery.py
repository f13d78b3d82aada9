"""What a new life makes of the rows that an earlier one left."""

from __future__ import annotations

from sortie.model import RunStatus, Trigger, WaitKind
from sortie.scheduler import Memory, Policy, Record
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Held, Waiting
from sortie.scheduler.rules import after_interruption
from sortie.store import Recovered, StoredHold, StoredRetry, UnfinishedRun


def recall(
    recovered: Recovered, policy: Policy, *, now: float, wall: float
) -> tuple[Memory, tuple[Record, ...]]:
    """Turn stored rows into claims, and return the records that must be committed first.

    ``now`` is monotonic and ``wall`` Unix seconds, read at the same moment; from here on only
    monotonic time counts. An interrupted run becomes a retry of the same attempt. A clock that
    was set back makes no wait longer than it was.
    """
    claims = {r.issue.id: _waiting(r, now, wall) for r in recovered.retries}
    claims |= {h.issue.id: _held(h, now, wall) for h in recovered.holds}
    records: list[Record] = []
    for run in recovered.unfinished:
        records.append(rec.RecordExit(run_id=run.run_id, status=RunStatus.INTERRUPTED))
        if run.issue.id in claims:
            continue  # the issue has been parked or planned since
        retry = _interrupted(run, policy)
        records.append(retry)
        claims[run.issue.id] = Waiting(
            issue=retry.issue,
            kind=retry.kind,
            trigger=retry.trigger,
            streak=retry.streak,
            due_at=now + retry.delay,
        )
    memory = Memory(
        claims=tuple(claims.values()),
        paused=recovered.paused,
        sessions=dict(recovered.sessions),
        workspaces=recovered.workspaces,
    )
    return memory, tuple(records)


def _interrupted(run: UnfinishedRun, policy: Policy) -> rec.RecordRetry:
    streak, delay = after_interruption(run.streak, policy)
    return rec.RecordRetry(
        issue=run.issue,
        kind=WaitKind.RETRY,
        trigger=Trigger.INTERRUPTED,
        streak=streak,
        delay=delay,
    )


def _waiting(retry: StoredRetry, now: float, wall: float) -> Waiting | HandingOff | Held:
    due_at = now + min(max(0.0, retry.due_at - wall), retry.delay)
    if retry.kind is WaitKind.HANDOFF:
        return HandingOff(
            issue=retry.issue, streak=retry.streak, tries=retry.tries, token=None, due_at=due_at
        )
    return Waiting(
        issue=retry.issue,
        kind=retry.kind,
        trigger=retry.trigger,
        streak=retry.streak,
        due_at=due_at,
    )


def _held(hold: StoredHold, now: float, wall: float) -> Held:
    since = now - max(0.0, wall - hold.since)
    return Held(issue=hold.issue, reason=hold.reason, detail=hold.detail, since=since)
