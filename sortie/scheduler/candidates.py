"""The queue of candidates: the issues of the last poll, in the order in which they are served.

Rule 1: an unclaimed candidate is either open or unfit; a claimed one is neither.
Rule 2: a candidate is unfit if a gate that depends on its issue alone was found closed. It stays
unfit until the issue or the settings change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from operator import attrgetter

from msgspec import Struct

from sortie.model import Issue, IssueId
from sortie.scheduler.timing import OrderKey

Place = tuple[OrderKey, IssueId]
"""Where an issue stands among those to be served: smaller is served first."""


class Candidate(Struct, frozen=True):
    """An issue of the last poll with its place in the queue."""

    place: Place
    issue: Issue


class GateVerdict(Struct, frozen=True):
    """What one gate says of an issue; ``reason`` is None where it is open."""

    gate: str
    reason: str | None


_place = attrgetter("place")


class CandidateQueue(Mapping[IssueId, Candidate]):
    """The candidates by issue id; ``unfit`` holds the closed gate of each unfit one."""

    def __init__(self) -> None:
        self._all: dict[IssueId, Candidate] = {}
        self._open: dict[IssueId, Candidate] = {}
        self._polled: tuple[tuple[Issue, ...], Collection[IssueId]] | None = None
        self._is_sorted = True
        self.unfit: dict[IssueId, GateVerdict] = {}

    def __getitem__(self, issue_id: IssueId) -> Candidate:
        return self._all[issue_id]

    def __iter__(self) -> Iterator[IssueId]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def in_order(self) -> Collection[Candidate]:
        """Return all candidates, in the order of service."""
        self._sort()
        return self._all.values()

    def open(self) -> Collection[Candidate]:
        """Return the open candidates, in the order of service."""
        self._sort()
        return self._open.values()

    def _sort(self) -> None:
        if not self._is_sorted:
            self._all, self._open = _sorted(self._all), _sorted(self._open)
            self._is_sorted = True

    def take(
        self,
        issues: tuple[Issue, ...],
        left_out: Collection[IssueId],
        claimed: Collection[IssueId],
        candidate: Callable[[Issue], Candidate],
    ) -> None:
        """Replace the candidates by the issues of a poll, without those in ``left_out``.

        ``candidate`` finds the place of an issue that is not as it was before.
        """
        if self._polled == (issues, left_out):
            return
        polled = {issue.id: issue for issue in issues if issue.id not in left_out}
        before, self._all = self._all, {}
        for issue_id, issue in polled.items():
            known = before.get(issue_id)
            if known is None or (known.issue is not issue and known.issue != issue):
                known = candidate(issue)
                self.unfit.pop(issue_id, None)
            self._all[issue_id] = known
        self.unfit = {i: verdict for i, verdict in self.unfit.items() if i in polled}
        self._open = {
            i: one for i, one in self._all.items() if i not in claimed and i not in self.unfit
        }
        self._polled, self._is_sorted = (issues, left_out), False

    def put(self, candidate: Candidate) -> None:
        """Add a candidate that is not claimed, or replace it by how its issue reads now."""
        issue_id = candidate.issue.id
        self.discard(issue_id)
        self._all[issue_id] = candidate
        self._polled = None
        self.show(issue_id)

    def discard(self, issue_id: IssueId) -> None:
        """Forget a candidate, if it is one."""
        if self._all.pop(issue_id, None) is not None:
            self._polled = None
        self.hide(issue_id)

    def hide(self, issue_id: IssueId) -> None:
        """Take an issue out of the queue: it is claimed now."""
        self._open.pop(issue_id, None)
        self.unfit.pop(issue_id, None)

    def show(self, issue_id: IssueId) -> None:
        """Put an issue that is no longer claimed back into the queue, if it is a candidate."""
        if issue_id in self._all:
            self._open[issue_id] = self._all[issue_id]
            self._is_sorted = False

    def set_aside(self, unfit: Mapping[IssueId, GateVerdict]) -> None:
        """Keep these open candidates out of the queue until they change."""
        self.unfit.update(unfit)
        for issue_id in unfit:
            del self._open[issue_id]

    def forget_verdicts(self) -> None:
        """Judge all candidates anew, also where the next poll finds the same."""
        self.reopen()
        self._polled = None

    def reopen(self) -> None:
        """Put all unfit candidates back into the queue: the settings have changed."""
        for issue_id in list(self.unfit):
            del self.unfit[issue_id]
            self.show(issue_id)


def _sorted(candidates: dict[IssueId, Candidate]) -> dict[IssueId, Candidate]:
    ordered = sorted(candidates.values(), key=_place)
    return {candidate.issue.id: candidate for candidate in ordered}
