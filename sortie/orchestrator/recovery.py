"""What a daemon does at its start about the runs, processes and holds of an earlier one.

Rule 1: what an earlier daemon left running is gone, or its issue is held, before a run may start.
Rule 2: what follows from the stored rows is on disk before the scheduler acts on it.
Rule 3: a recorded hold is compared with the settings of now, and ended or logged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.facts import Fact
from sortie.model import (
    LOCAL,
    NOTHING,
    HoldReason,
    Issue,
    ProcessesLeft,
    RunId,
    TransportError,
)
from sortie.orchestrator.recall import recall
from sortie.orchestrator.takeovers import record_of_takeover, runs_that_go_on, taken_over
from sortie.resources.lease import LeaseLost, current_lease
from sortie.scheduler import Memory, Policy, Record
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Held
from sortie.scheduler.holds import repaired
from sortie.scheduler.ways_out import ways_out
from sortie.store import (
    Recovered,
    Store,
    UnfinishedRun,
)
from sortie.telemetry import Publish, facts
from sortie.transports import Transport
from sortie.worker.cleanup import removal_cookie


class Recovery(Struct, frozen=True, kw_only=True):
    """What recovery works with. ``transport_of`` gives a host's transport; ``grace`` is in
    seconds; ``wall`` is the time in Unix seconds. ``has_program`` tells whether the agent's program
    is found, as far as that is known. ``notify`` adds the records of notifications.
    ``traced``: spans are made of runs. ``goes_on`` tells whether the settings of now let a turn of
    a rule go on that an earlier daemon has begun."""

    store: Store
    transport_of: Callable[[str], Transport]
    publish: Publish
    wall: Callable[[], float]
    grace: float
    has_program: Callable[[str], Awaitable[bool]]
    notify: Callable[[Sequence[Record]], tuple[Record, ...]] = tuple
    traced: bool = False
    goes_on: Callable[[UnfinishedRun, str], bool] = lambda _run, _rule: False


async def recover(recovery: Recovery, policy: Policy) -> Memory:
    """End what an earlier daemon left running, but for the runs that go on, and take over what it
    recorded.

    Raises StoreError where that cannot be written, and TransportError where the processes of this
    machine cannot be looked at.
    """
    recovered = await recovery.store.recover()
    going_on = await runs_that_go_on(recovery, recovered)
    ended = tuple(run for run in recovered.unfinished if run.run_id not in going_on)
    taken = [run for run in recovered.unfinished if run.run_id in going_on]
    recovered = replace(recovered, unfinished=ended)
    left = await _sweep(recovery, recovered)
    wall = recovery.wall()
    memory, records = recall(
        recovered,
        policy,
        now=trio.current_time(),
        wall=wall,
        left=left.known,
        adrift=left.adrift,
        by_other_clocks=current_lease() is not None,
    )
    memory, over = await let_go(memory, policy, recovery.has_program)
    now = trio.current_time()
    goes_on = tuple(taken_over(run, recovered, now=now, wall=wall) for run in taken)
    memory = replace(memory, taken_over=goes_on)
    records = recovery.notify((*records, *records_of(over), *map(record_of_takeover, goes_on)))
    if records:
        await recovery.store.commit(records, wall)
    for run in recovered.unfinished:
        recovery.publish(
            facts.RunRecovered(
                run_id=run.run_id,
                issue=run.issue,
                rule=recovered.rules.get(run.issue.id, ""),
                host=run.host,
                attempt=run.streak.failures,
                turns=run.turns,
                began=run.began,
                heard_of=run.heard_of,
                traced=recovery.traced,
            )
        )
    recovery.publish(
        facts.StateRestored(
            interrupted=len(recovered.unfinished),
            taken_over=len(goes_on),
            waiting=sum(1 for claim in memory.claims if not isinstance(claim, Held)),
            held=sum(1 for claim in memory.claims if isinstance(claim, Held)),
            paused=memory.paused,
        )
    )
    for fact in facts_of(memory, over, policy, records):
        recovery.publish(fact)
    for record in records:
        if isinstance(record, rec.RecordNotification):
            about, targets = record.notification.event, record.targets
            recovery.publish(facts.NotificationRecorded(about=about, targets=targets))
    return memory


def crashed_over(issue: Issue) -> tuple[Record, ...]:
    """Return what a daemon that crashes while it handles an issue leaves to the next.

    Where the issue is held, it stays so: what broke us is no change of it.
    """
    reason = HoldReason.INTERNAL_ERROR
    rebased = rec.RecordHold(issue=issue, reason=reason, detail="", again=True)
    return rec.RecordCrash(issue=issue), rebased


class _Left(Struct, frozen=True):
    """What could not be ended: ``known`` says of runs what stays, ``adrift`` are those of hosts
    that could not be asked, where it ends by its lease. ``failures`` are why this machine could
    not be looked at, or that a newer leader has a host."""

    known: dict[RunId, str]
    adrift: set[RunId]
    failures: list[TransportError | LeaseLost]


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
    except LeaseLost as exc:
        left.failures.append(exc)
        return
    except TransportError as exc:
        if host == LOCAL:
            left.failures.append(exc)
            return
        left.adrift.update(ids)
        recovery.publish(facts.OrphansLeft(where=where, error=str(exc)))
        return
    if ids or count:
        recovery.publish(facts.OrphansReaped(where=where, count=count))


Ended = Sequence[tuple[Held, str]]
"""Holds that are over, and why."""


async def let_go(
    memory: Memory, policy: Policy, has_program: Callable[[str], Awaitable[bool]]
) -> tuple[Memory, Ended]:
    """End the holds that the settings, or a program that is there now, have made pointless.

    Issues over which the daemon crashed stay as they are.
    """
    held = [c for c in memory.claims if isinstance(c, Held) and c.issue.id not in memory.crashed]
    wanted = {
        memory.rules.get(claim.issue.id, "")
        for claim in held
        if claim.reason is HoldReason.AGENT_NOT_FOUND
    }
    there = {rule for rule in wanted if await has_program(rule)}
    ended = []
    for claim in held:
        sessions = memory.sessions.get(claim.issue.id, 0)
        spent = memory.spent.get(claim.issue.id, NOTHING)
        rule = memory.rules.get(claim.issue.id, "")
        obeyed, is_there = policy.of_rule(rule), rule in there
        if why := repaired(claim, obeyed, sessions, spent, has_program=is_there):
            ended.append((claim, why))
    over = {claim.issue.id for claim, _ in ended}
    anew = {claim.issue.id for claim, _ in ended if not _keeps_budget(claim)}
    kept = replace(
        memory,
        claims=tuple(claim for claim in memory.claims if claim.issue.id not in over),
        sessions={i: count for i, count in memory.sessions.items() if i not in anew},
        spent={i: spent for i, spent in memory.spent.items() if i not in anew},
    )
    return kept, ended


def _keeps_budget(claim: Held) -> bool:
    """Tell whether a hold is over because its issue may use more than it did."""
    return claim.reason is HoldReason.USAGE_BUDGET_EXHAUSTED


def records_of(ended: Ended) -> Iterator[Record]:
    """Yield what must be on disk of holds that are over."""
    for claim, _ in ended:
        yield rec.ForgetHold(issue_id=claim.issue.id)
        if not _keeps_budget(claim):
            yield rec.ResetBudget(issue_id=claim.issue.id)


def facts_of(
    memory: Memory, ended: Ended, policy: Policy, records: Sequence[Record]
) -> Iterator[Fact]:
    """Yield the facts about holds: those that ended, were restored, or are new."""
    for claim, why in ended:
        yield facts.HoldEnded(issue=claim.issue, reason=why)
    new = [record for record in records if isinstance(record, rec.RecordHold)]
    known = {record.issue.id for record in new}
    for hold in memory.claims:
        if isinstance(hold, Held) and hold.issue.id not in known:
            yield facts.HoldRestored(
                issue=hold.issue,
                reason=hold.reason,
                detail=hold.detail,
                ways_out=ways_out(policy.of_rule(memory.rules.get(hold.issue.id, "")), hold),
            )
    for record in new:
        yield facts.IssueHeld(issue=record.issue, reason=record.reason, detail=record.detail)
