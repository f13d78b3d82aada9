"""The waits that have come due and compete for a slot, in the order in which they are served."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from sortie.model import IssueId, WaitKind
from sortie.scheduler.candidates import Place
from sortie.scheduler.claims import Waiting
from sortie.scheduler.rules import order_key


class DueWaits:
    """Due waits, at most one for each issue; ``epoch`` is that of SchedulerState."""

    __slots__ = ("_claims", "_epoch", "_order", "_places")

    def __init__(self, epoch: float) -> None:
        self._epoch = epoch
        self._claims: dict[IssueId, Waiting] = {}
        self._places: dict[IssueId, Place] = {}
        self._order: list[Place] = []

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[tuple[Place, Waiting]]:
        return ((place, self._claims[place[1]]) for place in self._order)

    def put(self, claim: Waiting) -> None:
        """Put a wait in its place, instead of one that the issue may have."""
        issue_id, place = claim.issue.id, self.place_of(claim)
        if self._places.get(issue_id) != place:
            self.discard(issue_id)
            self._places[issue_id] = place
            insort(self._order, place)
        self._claims[issue_id] = claim

    def discard(self, issue_id: IssueId) -> None:
        """Take an issue's wait out, if it has one."""
        place = self._places.pop(issue_id, None)
        if place is not None:
            del self._claims[issue_id]
            del self._order[bisect_left(self._order, place)]

    def place_of(self, claim: Waiting) -> Place:
        """Return where a wait stands in the queue; a continuation is as old as its due time."""
        continued = claim.kind is WaitKind.CONTINUATION
        age = self._epoch + claim.due_at if continued else None
        return order_key(claim.issue, age), claim.issue.id
