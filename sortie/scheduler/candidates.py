"""The issues of the last poll, in the order in which they are served.

Rule 1: a candidate that is not claimed is either open or unfit; one that is claimed is neither.
Rule 2: unfit are candidates whose own gates were found closed; it is known until the issue or the
settings change. An open one may turn out to be unfit when it is looked at.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, is_

from sortie.dataclass import dataclass
from sortie.model import Issue, IssueId
from sortie.scheduler.rules import OrderKey

Place = tuple[OrderKey, IssueId]
"""Where an issue stands among those to be served: smaller is served first."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An issue of the last poll with its place in the queue; ``group`` is its state, as a key."""

    place: Place
    issue: Issue
    group: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one gate says of an issue; ``reason`` is None where it is open."""

    gate: str
    reason: str | None


_place = attrgetter("place")
_issue = attrgetter("issue")


class Candidates(Mapping[IssueId, Candidate]):
    """Candidates by issue id. ``open`` are the open ones by their state, each in the order of
    service; do not change it."""

    def __init__(self) -> None:
        self._all: dict[IssueId, Candidate] = {}
        self._unfit: dict[IssueId, Verdict] = {}
        self._polled: tuple[Issue, ...] | None = None
        self._left_out: Collection[IssueId] = ()
        self._is_sorted = True
        self.open: dict[str, list[Candidate]] = {}

    def __getitem__(self, issue_id: IssueId) -> Candidate:
        return self._all[issue_id]

    def __iter__(self) -> Iterator[IssueId]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def unfit(self) -> Mapping[IssueId, Verdict]:
        """The closed gate of each candidate that is known to be unfit."""
        return self._unfit

    def issues(self) -> tuple[Issue, ...]:
        """Return the issues, in the order of service."""
        self._sort()
        return tuple(map(_issue, self._all.values()))

    def in_order(self) -> Iterable[Candidate]:
        """Return all candidates, in the order of service."""
        self._sort()
        return self._all.values()

    def are(self, issues: tuple[Issue, ...], left_out: Collection[IssueId]) -> bool:
        """Tell whether ``take`` would change nothing: a poll brought the very same objects."""
        polled = self._polled
        return (
            polled is not None
            and len(polled) == len(issues)
            and left_out == self._left_out
            and all(map(is_, polled, issues))
        )

    def take(
        self,
        issues: tuple[Issue, ...],
        left_out: Collection[IssueId],
        claimed: Collection[IssueId],
        candidate: Callable[[Issue], Candidate],
    ) -> None:
        """Take the issues of a poll but for those left out; ``candidate`` finds the place of one
        that is not the same object as before."""
        polled = {issue.id: issue for issue in issues if issue.id not in left_out}
        known = self._all
        fresh = [
            issue
            for issue_id, issue in polled.items()
            if issue_id not in known or known[issue_id].issue is not issue
        ]
        self._drop((known.keys() - polled.keys()).union(issue.id for issue in fresh))
        for one in map(candidate, fresh):
            self._all[one.issue.id] = one
            if one.issue.id not in claimed:
                self.open.setdefault(one.group, []).append(one)
        for group in self.open.values():
            group.sort(key=_place)
        self._polled, self._left_out, self._is_sorted = issues, left_out, False

    def _drop(self, ids: Collection[IssueId]) -> None:
        """Forget many candidates at once, where they are any."""
        for issue_id in ids:
            self._all.pop(issue_id, None)
            self._unfit.pop(issue_id, None)
        for name, group in self.open.items():
            self.open[name] = [c for c in group if c.issue.id not in ids]

    def put(self, candidate: Candidate) -> None:
        """Add a candidate that is not claimed, or note how it is now."""
        issue_id = candidate.issue.id
        self.discard(issue_id)
        self._all[issue_id] = candidate
        self._polled, self._is_sorted = None, False
        self.show(issue_id)

    def discard(self, issue_id: IssueId) -> None:
        """Forget a candidate, if it is one."""
        if issue_id in self._all:
            self.hide(issue_id)
            del self._all[issue_id]
            self._polled = None

    def hide(self, issue_id: IssueId) -> None:
        """Keep an issue out of the queue that is claimed now."""
        candidate = self._all.get(issue_id)
        if candidate is None or self._unfit.pop(issue_id, None) is not None:
            return
        group = self.open.get(candidate.group, [])
        at = bisect_left(group, candidate.place, key=_place)
        if at < len(group) and group[at] is candidate:
            del group[at]

    def show(self, issue_id: IssueId) -> None:
        """Let an issue into the queue again that is claimed no more, if it is a candidate."""
        candidate = self._all.get(issue_id)
        if candidate is not None:
            insort(self.open.setdefault(candidate.group, []), candidate, key=_place)

    def set_aside(self, unfit: Mapping[IssueId, Verdict]) -> None:
        """Look at these open candidates no more before they change."""
        self._unfit.update(unfit)
        for group in {self._all[i].group for i in unfit}:
            self.open[group] = [c for c in self.open[group] if c.issue.id not in unfit]

    def reopen(self) -> None:
        """Let all that was set aside be looked at again: the settings have changed."""
        unfit, self._unfit = self._unfit, {}
        for candidate in map(self._all.__getitem__, unfit):
            self.open.setdefault(candidate.group, []).append(candidate)
        for group in self.open.values():
            group.sort(key=_place)

    def _sort(self) -> None:
        if not self._is_sorted:
            ordered: Sequence[Candidate] = sorted(self._all.values(), key=_place)
            self._all = {c.issue.id: c for c in ordered}
            self._is_sorted = True
