"""Holds that a new life finds on record: judged anew by the settings of now, ended or told of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace

from sortie.facts import Fact
from sortie.model import NOTHING, HoldReason
from sortie.scheduler import Memory, Policy, Record
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Held
from sortie.scheduler.explanation import ways_out
from sortie.scheduler.holds import repaired
from sortie.telemetry import facts

Ended = Sequence[tuple[Held, str]]
"""Holds that are over, and why."""


async def let_go(
    memory: Memory, policy: Policy, has_program: Callable[[], Awaitable[bool]]
) -> tuple[Memory, Ended]:
    """End the holds that the settings, or a program that is there now, have made pointless.

    Issues over which the daemon crashed stay as they are.
    """
    held = [c for c in memory.claims if isinstance(c, Held) and c.issue.id not in memory.crashed]
    is_wanted = any(claim.reason is HoldReason.AGENT_NOT_FOUND for claim in held)
    is_there = is_wanted and await has_program()
    ended = []
    for claim in held:
        sessions = memory.sessions.get(claim.issue.id, 0)
        spent = memory.spent.get(claim.issue.id, NOTHING)
        if why := repaired(claim, policy, sessions, spent, has_program=is_there):
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
    """Yield what is told of holds: those that are over, those restored, and those that are new."""
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
                ways_out=ways_out(policy, hold),
            )
    for record in new:
        yield facts.IssueHeld(issue=record.issue, reason=record.reason, detail=record.detail)
