"""The earliest of many deadlines, each of which may be moved or lifted at any time.

Rule: the heap holds every deadline that stands; what it holds besides is passed over when it comes
to the top.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from sortie.model import IssueId

_SPARE = 64
"""Entries that may be out of date before a small heap is made anew."""


class Deadlines:
    """At most one deadline for each issue, in seconds."""

    __slots__ = ("_at", "_heap")

    def __init__(self) -> None:
        self._at: dict[IssueId, float] = {}
        self._heap: list[tuple[float, IssueId]] = []

    def set(self, issue_id: IssueId, at: float | None) -> None:
        """Give an issue this deadline instead of any other; None lifts it."""
        if at == self._at.get(issue_id):
            return
        if at is None:
            del self._at[issue_id]
            return
        self._at[issue_id] = at
        heapq.heappush(self._heap, (at, issue_id))
        if len(self._heap) > 2 * len(self._at) + _SPARE:
            self._heap = [(at, issue_id) for issue_id, at in self._at.items()]
            heapq.heapify(self._heap)

    def earliest(self) -> float:
        """Return the first deadline; inf where there is none."""
        heap = self._heap
        while heap and self._at.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def passed(self, now: float) -> list[IssueId]:
        """Return the issues whose deadline has come, the earliest first; it stands still."""
        passed: dict[IssueId, float] = {}
        while self.earliest() <= now:
            at, issue_id = heapq.heappop(self._heap)
            passed[issue_id] = at
        for issue_id, at in passed.items():
            heapq.heappush(self._heap, (at, issue_id))
        return list(passed)

    def __iter__(self) -> Iterator[IssueId]:
        return iter(self._at)
