"""Turn what an earlier daemon recorded into the claims of a new one; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from sortie.model import HoldReason, Issue, IssueId, RunId, RunStatus, Trigger, WaitKind
from sortie.scheduler import Memory, Policy, Record
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Held, Waiting
from sortie.scheduler.holds import record_of
from sortie.scheduler.timing import CRASHES_UNTIL_HELD, adrift_delay, after_interruption
from sortie.scheduler.usage_limits import UsageLimit
from sortie.store import (
    Recovered,
    StoredHold,
    StoredLimit,
    StoredQuestion,
    StoredRetry,
    UnfinishedRun,
)

_CRASHED = "the daemon crashed {} times in a row while it handled this issue; see its log"


def recall(
    recovered: Recovered,
    policy: Policy,
    *,
    now: float,
    wall: float,
    left: Mapping[RunId, str] | None = None,
    adrift: Collection[RunId] = (),
    by_other_clocks: bool = False,
) -> tuple[Memory, tuple[Record, ...]]:
    """Turn stored rows into claims, and return the records that must be committed first.

    ``now`` is monotonic and ``wall`` Unix seconds, read at the same moment; from here on only
    monotonic time counts. An interrupted run becomes a retry of the same attempt. A clock that
    was set back makes no wait longer than it was. ``left`` says of runs whose processes are there
    still what they are; their issues are held. Those ``adrift`` may go on until their lease ends.
    ``by_other_clocks``: rows may be by the clocks of other machines, which need not agree with
    ours. A wait that may be for the end of a run adrift begins anew then.
    """
    left = left or {}
    retries = [_without_outage(r, wall) for r in recovered.retries]
    claims: dict[IssueId, Waiting | HandingOff | Held] = {}
    for wait in retries:
        obeyed = policy.of_rule(recovered.rules.get(wait.issue.id, ""))
        least = adrift_delay(obeyed) if by_other_clocks else 0.0
        claims[wait.issue.id] = _waiting(wait, now, wall, least)
    claims |= {
        h.issue.id: _held(h, recovered.questions.get(h.issue.id), now, wall)
        for h in recovered.holds
    }
    records: list[Record] = [
        _put_right(new)
        for old, new in zip(recovered.retries, retries, strict=True)
        if new is not old or new.due_at - wall > new.delay
    ]
    cut_short = {run.issue.id for run in recovered.unfinished}
    for run in recovered.unfinished:
        records.append(rec.RecordExit(run_id=run.run_id, status=RunStatus.INTERRUPTED))
        if run.run_id in left:
            detail = f"its run left {left[run.run_id]}"
            _park(claims, records, _fault(run.issue, detail, now, baseline_final=False))
        elif run.issue.id not in claims:  # else it has been parked or planned since
            obeyed = policy.of_rule(recovered.rules.get(run.issue.id, ""))
            delay = adrift_delay(obeyed) if run.run_id in adrift else 0.0
            retry = _interrupted(run, obeyed, delay)
            records.append(retry)
            claims[run.issue.id] = _waits(retry, now)
    for crash in recovered.crashes:
        if crash.times >= CRASHES_UNTIL_HELD:
            detail = _CRASHED.format(crash.times)
            baseline_final = crash.issue.id not in cut_short
            _park(claims, records, _fault(crash.issue, detail, now, baseline_final=baseline_final))
    return _memory(recovered, tuple(claims.values()), now, wall), tuple(records)


def _memory(
    recovered: Recovered, claims: tuple[Waiting | HandingOff | Held, ...], now: float, wall: float
) -> Memory:
    return Memory(
        claims=claims,
        paused=recovered.paused,
        sessions=dict(recovered.sessions),
        spent=dict(recovered.spent),
        limits=tuple(_limited(limit, now, wall) for limit in recovered.limits),
        agent_sessions=dict(recovered.agent_sessions),
        deliveries=dict(recovered.deliveries),
        rules=dict(recovered.rules),
        stages=dict(recovered.stages),
        questions={i: stored.asked for i, stored in recovered.questions.items()},
        watches=recovered.watches,
        workspaces=recovered.workspaces,
        unsaved={place: now - max(0.0, wall - at) for place, at in recovered.unsaved.items()},
        crashed=frozenset(crash.issue.id for crash in recovered.crashes),
        comments=recovered.comments,
    )


def _waits(retry: rec.RecordRetry, now: float) -> Waiting:
    return Waiting(
        issue=retry.issue,
        kind=retry.kind,
        trigger=retry.trigger,
        streak=retry.streak,
        due_at=now + retry.delay,
    )


def _fault(issue: Issue, detail: str, now: float, *, baseline_final: bool) -> Held:
    reason = HoldReason.INTERNAL_ERROR
    return Held(issue=issue, reason=reason, detail=detail, since=now, baseline_final=baseline_final)


def _park(
    claims: dict[IssueId, Waiting | HandingOff | Held], records: list[Record], hold: Held
) -> None:
    """Hold an issue that is not held already, instead of what it waits for."""
    issue = hold.issue
    claim = claims.get(issue.id)
    if isinstance(claim, Held):
        return
    if claim is not None:
        records.append(rec.ForgetRetry(issue_id=issue.id))
    records.append(record_of(hold))
    claims[issue.id] = hold


def _interrupted(run: UnfinishedRun, policy: Policy, least: float) -> rec.RecordRetry:
    streak, delay = after_interruption(run.streak, policy)
    return rec.RecordRetry(
        issue=run.issue,
        kind=WaitKind.RETRY,
        trigger=Trigger.INTERRUPTED,
        streak=streak,
        delay=max(delay, least),
    )


def _without_outage(retry: StoredRetry, wall: float) -> StoredRetry:
    """Make a handoff due that waits for the end of an outage: a new daemon asks once how it is."""
    if retry.kind is not WaitKind.HANDOFF or retry.tries or retry.due_at <= wall:
        return retry
    return replace(retry, due_at=wall, delay=0.0)


def _put_right(retry: StoredRetry) -> rec.RecordRetry:
    """Record a wait again whose end has changed, as by a clock that was set back.

    Otherwise each start would begin the wait again.
    """
    return rec.RecordRetry(
        issue=retry.issue,
        kind=retry.kind,
        trigger=retry.trigger,
        streak=retry.streak,
        delay=retry.delay,
        tries=retry.tries,
    )


def _waiting(
    retry: StoredRetry, now: float, wall: float, least: float
) -> Waiting | HandingOff | Held:
    """Return what an issue waits for: ``least`` seconds, where its wait was as long as that."""
    due_at = now + min(max(0.0, retry.due_at - wall), retry.delay)
    if retry.kind is WaitKind.HANDOFF:
        return HandingOff(
            issue=retry.issue, streak=retry.streak, tries=retry.tries, token=None, due_at=due_at
        )
    if retry.delay >= least:
        due_at = max(due_at, now + least)
    return Waiting(
        issue=retry.issue,
        kind=retry.kind,
        trigger=retry.trigger,
        streak=retry.streak,
        due_at=due_at,
    )


def _limited(limit: StoredLimit, now: float, wall: float) -> UsageLimit:
    until = now + min(max(0.0, limit.until - wall), limit.delay)
    return UsageLimit(
        account=limit.account,
        message=limit.message,
        since=now - max(0.0, wall - limit.since),
        until=until,
        resets_at=limit.resets_at,
        times=limit.times,
        backing_off=until > now,
    )


def _held(hold: StoredHold, question: StoredQuestion | None, now: float, wall: float) -> Held:
    since, due_at = now - max(0.0, wall - hold.since), None
    if (
        hold.reason is HoldReason.QUESTION
        and question is not None
        and question.due_at is not None
        and question.delay is not None
    ):
        due_at = now + min(max(0.0, question.due_at - wall), question.delay)
    return Held(
        issue=hold.issue,
        reason=hold.reason,
        detail=hold.detail,
        since=since,
        baseline_final=hold.baseline_final,
        handoff_state=hold.handoff_state,
        due_at=due_at,
    )
