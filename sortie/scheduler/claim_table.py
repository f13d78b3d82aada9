"""The claims by issue id, and what is looked up in them all the time.

Rule 1: a claim changes by ``table[issue_id] = claim`` and ``del table[issue_id]`` only; both bring
every index up to date, so that none can disagree with the claims.
Rule 2: an index is a function of the claims and of ``in_progress_state``; the tests compute it anew
after each step of the simulation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableMapping, ValuesView

from sortie.model import IssueId, RunId
from sortie.scheduler.candidates import Candidates
from sortie.scheduler.claims import (
    WORKED,
    Claim,
    Cleaning,
    Departure,
    HandingOff,
    Held,
    Rechecking,
    Running,
    Waiting,
    Worked,
)
from sortie.scheduler.deadlines import Deadlines
from sortie.scheduler.due_waits import DueWaits
from sortie.scheduler.load import Load, Share, share_of_claim


class ClaimTable(MutableMapping[IssueId, Claim]):
    """At most one claim for each issue, in the order in which issues were claimed.

    ``load`` is what runs or is about to; change a copy of it only. ``due`` are the waits that
    compete for a slot, ``held`` and ``cleaning`` the claims of these kinds, and ``missing`` those
    that a first read did not find. ``deadlines`` are those of waits, clean-ups and turns that have
    to end, ``handoffs`` those of handoffs that are tried again. An issue that is claimed is no
    open candidate.
    """

    def __init__(self, candidates: Candidates, in_progress_state: str | None, epoch: float) -> None:
        self._claims: dict[IssueId, Claim] = {}
        self._candidates = candidates
        self._in_progress_state = in_progress_state
        self._places: dict[IssueId, int] = {}
        self._next_place = 0
        self._shares: dict[IssueId, Share] = {}
        self._runs: dict[RunId, IssueId] = {}
        self.load = Load()
        self.due = DueWaits(epoch)
        self.held: dict[IssueId, Held] = {}
        self.cleaning: dict[IssueId, Cleaning] = {}
        self.missing: dict[IssueId, Claim] = {}
        self.deadlines = Deadlines()
        self.handoffs = Deadlines()

    def __getitem__(self, issue_id: IssueId) -> Claim:
        return self._claims[issue_id]

    def __iter__(self) -> Iterator[IssueId]:
        return iter(self._claims)

    def __len__(self) -> int:
        return len(self._claims)

    def __contains__(self, issue_id: object) -> bool:
        return issue_id in self._claims

    def values(self) -> ValuesView[Claim]:
        """Return the claims."""
        return self._claims.values()

    def copy(self) -> dict[IssueId, Claim]:
        """Return the claims as they are now."""
        return self._claims.copy()

    def find(self, issue_id: IssueId) -> Claim | None:
        """Return an issue's claim, None where it has none."""
        return self._claims.get(issue_id)

    def worked_by(self, run_id: RunId) -> Worked | None:
        """Return the claim of a run, or None for a run of an earlier claim."""
        issue_id = self._runs.get(run_id)
        claim = None if issue_id is None else self._claims[issue_id]
        assert claim is None or isinstance(claim, WORKED)
        return claim

    def share_of(self, issue_id: IssueId) -> Share | None:
        """Return what an issue's claim takes of the room, None where it takes nothing."""
        return self._shares.get(issue_id)

    def worked(self) -> Iterator[Worked]:
        """Iterate over the claims that a worker stands behind."""
        return filter(None, map(self.worked_by, self._runs))

    def in_order(self, ids: Collection[IssueId]) -> list[IssueId]:
        """Return those of the ids that are claimed, in the order in which they were."""
        return sorted((i for i in ids if i in self._claims), key=self._places.__getitem__)

    def count_by(self, in_progress_state: str | None) -> None:
        """Count what is about to run as bound for another state."""
        self._in_progress_state = in_progress_state
        for issue_id, claim in self._claims.items():
            if isinstance(claim, Rechecking):
                self._set_share(issue_id, claim)

    def __setitem__(self, issue_id: IssueId, claim: Claim) -> None:
        before = self._claims.get(issue_id)
        if before is None:
            self._candidates.hide(issue_id)
            self._places[issue_id] = self._next_place
            self._next_place += 1
        else:
            self._leave(issue_id, before)
        if not (isinstance(claim, Waiting) and claim.due):
            self.due.discard(issue_id)
        self._claims[issue_id] = claim
        self._set_share(issue_id, claim)
        self._set_deadlines(issue_id, claim)
        match claim:
            case Waiting(due=True):
                self.due.put(claim)
            case Held():
                self.held[issue_id] = claim
            case Cleaning():
                self.cleaning[issue_id] = claim
            case _ if isinstance(claim, WORKED):
                self._runs[claim.run_id] = issue_id
            case _:
                pass
        if claim.missing_since is not None:
            self.missing[issue_id] = claim

    def __delitem__(self, issue_id: IssueId) -> None:
        self._leave(issue_id, self._claims.pop(issue_id))
        del self._places[issue_id]
        self.due.discard(issue_id)
        self._set_share(issue_id, None)
        self._set_deadlines(issue_id, None)
        self._candidates.show(issue_id)

    def _leave(self, issue_id: IssueId, claim: Claim) -> None:
        """Take a claim that is over out of the indexes by kind."""
        match claim:
            case Held():
                del self.held[issue_id]
            case Cleaning():
                del self.cleaning[issue_id]
            case _ if isinstance(claim, WORKED):
                del self._runs[claim.run_id]
            case _:
                pass
        if claim.missing_since is not None:
            del self.missing[issue_id]

    def _set_share(self, issue_id: IssueId, claim: Claim | None) -> None:
        share = None if claim is None else share_of_claim(claim, self._in_progress_state)
        before = self._shares.get(issue_id)
        if share == before:
            return
        if before is not None:
            self.load.remove(before)
            del self._shares[issue_id]
        if share is not None:
            self.load.add(share)
            self._shares[issue_id] = share

    def _set_deadlines(self, issue_id: IssueId, claim: Claim | None) -> None:
        again_at = None
        if isinstance(claim, HandingOff) and claim.token is None:
            again_at = claim.due_at
        self.handoffs.set(issue_id, again_at)
        self.deadlines.set(issue_id, _deadline(claim))


def _deadline(claim: Claim | None) -> float | None:
    match claim:
        case Waiting(due=False):
            return max(claim.due_at, claim.again_at)
        case Cleaning(busy=False):
            return claim.due_at
        case Running(departure=Departure(stop_at=stop_at)):
            return stop_at
        case _:
            return None
