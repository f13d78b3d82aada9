"""Who is served before whom, reckoned beside the scheduler.

Rule: of two issues that could both run, the one with the better priority is chosen, then the older,
then the one with the smaller identifier; a continuation is as old as its due time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from sortie.model import LOCAL, Issue, IssueId, WaitKind, state_key
from sortie.scheduler import Decision, Policy
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Claim, Rechecking, Waiting
from tests.sim.system.account import unfit

Place = tuple[int, float, str, str]


class Serving:
    """When the continuations that are planned come due, in Unix seconds."""

    def __init__(self, epoch: float) -> None:
        self._epoch = epoch
        self._continued: dict[IssueId, float] = {}

    def remember(self, waiting: Iterator[Waiting]) -> None:
        """Take over what an earlier life planned."""
        for claim in waiting:
            if claim.kind is WaitKind.CONTINUATION:
                self._continued[claim.issue.id] = self._epoch + claim.due_at

    def hear(self, decisions: Sequence[Decision], now: float) -> None:
        """Take in what was decided at a time, in monotonic seconds."""
        for decision in decisions:
            match decision:
                case rec.RecordRetry(issue=issue, kind=WaitKind.CONTINUATION, delay=delay):
                    self._continued[issue.id] = self._epoch + now + delay
                case rec.RecordRetry(issue=issue):
                    self._continued.pop(issue.id, None)
                case _:
                    pass

    def out_of_turn(
        self,
        policy: Policy,
        token: int,
        claims: Mapping[IssueId, Claim],
        candidates: Sequence[Issue],
        spent: set[IssueId],
    ) -> Iterator[str]:
        """Yield who was passed over by the question ``token``, which stands for the chosen ones.

        ``spent`` are issues that may have no run. Only issues that need the same room are compared:
        those in one state, where no host has a workspace that draws them.
        """
        chosen = [c for c in claims.values() if isinstance(c, Rechecking) and c.token == token]
        if not chosen or policy.hosts != (LOCAL,):
            return
        places = [(self._place(c.issue, waited=c.waited is not None), c.issue) for c in chosen]
        for issue, waited in _left(claims, candidates):
            place = self._place(issue, waited=waited)
            if issue.id in spent or unfit(issue, policy) is not None:
                continue
            for better, other in places:
                if place < better and state_key(other.state) == state_key(issue.state):
                    yield f"{other.identifier} {better} is served before {issue.identifier} {place}"

    def _place(self, issue: Issue, *, waited: bool) -> Place:
        rank = issue.priority if issue.priority in (1, 2, 3, 4) else 5
        age = issue.created_at.timestamp() if issue.created_at else math.inf
        if waited:
            age = self._continued.get(issue.id, age)
        return (rank, age, issue.identifier, issue.id)


def _left(
    claims: Mapping[IssueId, Claim], candidates: Sequence[Issue]
) -> Iterator[tuple[Issue, bool]]:
    """Yield what could have been chosen and was not, and whether it had waited."""
    for claim in claims.values():
        if isinstance(claim, Waiting) and claim.due:
            yield claim.issue, True
    for issue in candidates:
        if issue.id not in claims:
            yield issue, False
