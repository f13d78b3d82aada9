"""The issues of the last poll that nothing is done about yet, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

from sortie.dataclass import dataclass
from sortie.model import Issue, IssueId
from sortie.scheduler.gate_view import View, view_of
from sortie.scheduler.gates import FITNESS, ROOM, Gate, closed
from sortie.scheduler.state import SchedulerState

SOON = "it starts with the next dispatch, once the tracker confirms that it may"


@dataclass(frozen=True, slots=True)
class BacklogIssue:
    """An issue that is not started, and the sentence that says why."""

    issue: Issue
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """``queued`` issues start when there is room, ``blocked`` ones only when they have changed.

    The lists hold the first of them, in the order in which they are served.
    """

    queued: int
    blocked: int
    first_queued: tuple[BacklogIssue, ...]
    first_blocked: tuple[BacklogIssue, ...]


def backlog(state: SchedulerState, now: float, shown: int, unfit: Collection[IssueId]) -> Backlog:
    """Return what is kept back, with ``shown`` issues of either kind at most.

    ``unfit`` are those of a snapshot: with thousands of issues their gates are not asked twice.
    """
    view = view_of(state, now)
    candidates, claims = state.candidates, state.claims
    unclaimed = [c.issue for c in candidates.in_order() if c.issue.id not in claims]
    queued = [issue for issue in unclaimed if issue.id not in unfit]
    blocked = (issue for issue in unclaimed if issue.id in unfit)
    return Backlog(
        queued=len(queued),
        blocked=len(unclaimed) - len(queued),
        first_queued=_kept(queued[:shown], ROOM, view),
        first_blocked=_kept(islice(blocked, shown), FITNESS, view),
    )


def _kept(
    issues: Iterable[Issue], gates: tuple[tuple[str, Gate], ...], view: View
) -> tuple[BacklogIssue, ...]:
    return tuple(BacklogIssue(issue, closed(gates, issue, view) or SOON) for issue in issues)
