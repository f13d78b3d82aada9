"""What a new life does about an earlier one, before anything else happens.

Rule 1: what an earlier life left running is gone, or its issue is held, before a run may start.
Rule 2: what follows from the stored rows is on disk before the scheduler acts on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

import trio

from sortie.model import (
    LOCAL,
    HoldReason,
    Issue,
    IssueId,
    ProcessesLeft,
    RunId,
    RunStatus,
    TransportError,
    Trigger,
    WaitKind,
)
from sortie.orchestrator.restored_holds import facts_of, let_go, records_of
from sortie.scheduler import Memory, Policy, Record
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Held, Waiting
from sortie.scheduler.holds import record_of
from sortie.scheduler.rules import CRASHES_UNTIL_HELD, adrift_delay, after_interruption
from sortie.scheduler.usage_limits import UsageLimit
from sortie.store import (
    DueComment,
    Recovered,
    Store,
    StoredHold,
    StoredLimit,
    StoredRetry,
    UnfinishedRun,
)
from sortie.telemetry import Publish, facts
from sortie.transports import Transport
from sortie.worker.cleanup import removal_cookie

_CRASHED = "the daemon crashed {} times in a row while it handled this issue; see its log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What recovery works with. ``transport_of`` gives a host's transport; ``grace`` is in
    seconds; ``wall`` is the time in Unix seconds. ``has_program`` tells whether the agent's program
    is found, as far as that can be told."""

    store: Store
    transport_of: Callable[[str], Transport]
    publish: Publish
    wall: Callable[[], float]
    grace: float
    has_program: Callable[[], Awaitable[bool]]


async def recover(recovery: Recovery, policy: Policy) -> Memory:
    """End what an earlier life left running, and take over what it recorded.

    Raises StoreError where that cannot be written, and TransportError where the processes of this
    machine cannot be looked at.
    """
    recovered = await recovery.store.recover()
    left = await _sweep(recovery, recovered)
    wall = recovery.wall()
    memory, records = recall(
        recovered,
        policy,
        now=trio.current_time(),
        wall=wall,
        left=left.known,
        adrift=left.adrift,
    )
    memory, ended = await let_go(memory, policy, recovery.has_program)
    records = (*records, *records_of(ended))
    if records:
        await recovery.store.commit(records, wall)
    for run in recovered.unfinished:
        recovery.publish(facts.RunRecovered(run_id=run.run_id, issue=run.issue))
    recovery.publish(
        facts.StateRestored(
            interrupted=len(recovered.unfinished),
            waiting=sum(1 for claim in memory.claims if not isinstance(claim, Held)),
            held=sum(1 for claim in memory.claims if isinstance(claim, Held)),
            paused=memory.paused,
        )
    )
    for fact in facts_of(memory, ended, policy, records):
        recovery.publish(fact)
    return memory


def crashed_over(issue: Issue) -> tuple[Record, ...]:
    """Return what a life that crashes while it handles an issue leaves to the next.

    Where the issue is held, it stays so: what broke us is no change of it.
    """
    reason = HoldReason.INTERNAL_ERROR
    rebased = rec.RecordHold(issue=issue, reason=reason, detail="", again=True)
    return rec.RecordCrash(issue=issue), rebased


@dataclass(frozen=True, slots=True)
class _Left:
    """What could not be ended: ``known`` says of runs what stays, ``adrift`` are those of hosts
    that could not be asked, where it ends by its lease. ``failures`` are why this machine could
    not be looked at."""

    known: dict[RunId, str]
    adrift: set[RunId]
    failures: list[TransportError]


async def _sweep(recovery: Recovery, recovered: Recovered) -> _Left:
    """End what runs and removals left, on all hosts at once."""
    left = _Left({}, set(), [])
    # On this machine also what belongs to no run on record is looked for.
    runs: dict[str, list[UnfinishedRun]] = {LOCAL: []}
    for run in recovered.unfinished:
        runs.setdefault(run.host, []).append(run)
    removals: dict[str, list[RunId]] = {}
    for known in recovered.workspaces:
        removals.setdefault(known.host, []).append(removal_cookie(known))
    async with trio.open_nursery() as nursery:
        for host in runs.keys() | removals.keys():
            if host == LOCAL or host in runs:  # elsewhere a removal ends with its lease
                hunted = (host, runs.get(host, []), removals.get(host, []))
                nursery.start_soon(_sweep_host, recovery, *hunted, left)
    for failure in left.failures:
        raise failure
    return left


async def _sweep_host(
    recovery: Recovery, host: str, runs: list[UnfinishedRun], removals: list[RunId], left: _Left
) -> None:
    where = LOCAL if host == LOCAL else "host"
    ids = [run.run_id for run in runs]
    roots = {run.run_id: run.process for run in runs if run.process is not None}
    if host != LOCAL:
        recovery.publish(facts.OrphansSought(host=host, runs=len(runs)))
    try:
        transport = recovery.transport_of(host)
        count = await transport.sweep([*ids, *removals], grace=recovery.grace, roots=roots)
    except ProcessesLeft as exc:
        count = exc.ended
        left.known.update(dict.fromkeys(map(RunId, exc.run_ids) if exc.run_ids else ids, str(exc)))
        recovery.publish(facts.OrphansLeft(where=where, error=str(exc)))
    except TransportError as exc:
        if host == LOCAL:
            left.failures.append(exc)
            return
        left.adrift.update(ids)
        recovery.publish(facts.OrphansLeft(where=where, error=str(exc)))
        return
    if ids or count:
        recovery.publish(facts.OrphansReaped(where=where, count=count))


def recall(
    recovered: Recovered,
    policy: Policy,
    *,
    now: float,
    wall: float,
    left: Mapping[RunId, str] | None = None,
    adrift: Collection[RunId] = (),
) -> tuple[Memory, tuple[Record, ...]]:
    """Turn stored rows into claims, and return the records that must be committed first.

    ``now`` is monotonic and ``wall`` Unix seconds, read at the same moment; from here on only
    monotonic time counts. An interrupted run becomes a retry of the same attempt. A clock that
    was set back makes no wait longer than it was. ``left`` says of runs whose processes are there
    still what they are; their issues are held. Those ``adrift`` may go on until their lease ends.
    """
    left = left or {}
    claims = {r.issue.id: _waiting(r, now, wall) for r in recovered.retries}
    claims |= {h.issue.id: _held(h, now, wall) for h in recovered.holds}
    records: list[Record] = [_put_right(r) for r in recovered.retries if r.due_at - wall > r.delay]
    cut_short = {run.issue.id for run in recovered.unfinished}
    for run in recovered.unfinished:
        records.append(rec.RecordExit(run_id=run.run_id, status=RunStatus.INTERRUPTED))
        if run.run_id in left:
            detail = f"its run left {left[run.run_id]}"
            _park(claims, records, _fault(run.issue, detail, now, settled=False))
        elif run.issue.id not in claims:  # else it has been parked or planned since
            delay = adrift_delay(policy) if run.run_id in adrift else 0.0
            retry = _interrupted(run, policy, delay)
            records.append(retry)
            claims[run.issue.id] = Waiting(
                issue=retry.issue,
                kind=retry.kind,
                trigger=retry.trigger,
                streak=retry.streak,
                due_at=now + retry.delay,
            )
    for crash in recovered.crashes:
        if crash.times >= CRASHES_UNTIL_HELD:
            detail = _CRASHED.format(crash.times)
            settled = crash.issue.id not in cut_short
            _park(claims, records, _fault(crash.issue, detail, now, settled=settled))
    memory = Memory(
        claims=tuple(claims.values()),
        paused=recovered.paused,
        sessions=dict(recovered.sessions),
        spent=dict(recovered.spent),
        limits=tuple(_limited(limit, now, wall) for limit in recovered.limits),
        agent_sessions=dict(recovered.agent_sessions),
        workspaces=recovered.workspaces,
        crashed=frozenset(crash.issue.id for crash in recovered.crashes),
        comments=tuple(map(_comment, recovered.comments)),
    )
    return memory, tuple(records)


def _comment(due: DueComment) -> rec.RecordComment:
    return rec.RecordComment(
        run_id=due.run_id, issue=due.issue, lifecycle=due.lifecycle, body=due.body
    )


def _fault(issue: Issue, detail: str, now: float, *, settled: bool) -> Held:
    reason = HoldReason.INTERNAL_ERROR
    return Held(issue=issue, reason=reason, detail=detail, since=now, settled=settled)


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


def _put_right(retry: StoredRetry) -> rec.RecordRetry:
    """Record a wait anew that a clock set back made longer: else each start would begin it anew."""
    return rec.RecordRetry(
        issue=retry.issue,
        kind=retry.kind,
        trigger=retry.trigger,
        streak=retry.streak,
        delay=retry.delay,
        tries=retry.tries,
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


def _limited(limit: StoredLimit, now: float, wall: float) -> UsageLimit:
    until = now + min(max(0.0, limit.until - wall), limit.delay)
    return UsageLimit(
        account=limit.account,
        message=limit.message,
        since=now - max(0.0, wall - limit.since),
        until=until,
        resets_at=limit.resets_at,
        times=limit.times,
        resting=until > now,
    )


def _held(hold: StoredHold, now: float, wall: float) -> Held:
    since = now - max(0.0, wall - hold.since)
    return Held(
        issue=hold.issue,
        reason=hold.reason,
        detail=hold.detail,
        since=since,
        settled=hold.settled,
        handoff_state=hold.handoff_state,
    )
