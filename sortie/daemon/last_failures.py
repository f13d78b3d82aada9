"""Why each issue failed last, kept up to date by facts.

Rule 1: a run that ended well ends it; one that was stopped or interrupted changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from sortie.facts import Fact
from sortie.model import Issue, IssueId, RunStatus, StopReason
from sortie.store import Store
from sortie.telemetry import facts
from sortie.web.issue import FailureView

REMEMBERED_ISSUES = 10_000
"""Issues that are remembered; beyond them the one that failed longest ago is forgotten."""

_HISTORY_ROWS = 10
_FAILED = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.STALLED, RunStatus.CANCELLED})


class LastFailures:
    """A sink that begins with what is recorded; ``clock`` gives aware wall-clock time."""

    def __init__(
        self, clock: Callable[[], datetime], recorded: Mapping[IssueId, FailureView] | None = None
    ) -> None:
        self._clock = clock
        self._failures = dict(recorded or {})

    def of(self, issue: Issue) -> FailureView | None:
        """Return why an issue failed last, None where it has not, or has ended well since."""
        return self._failures.get(issue.id)

    def __call__(self, fact: Fact) -> None:
        """Note what a fact tells."""
        match fact:
            case facts.RunFinished(issue=issue, status=RunStatus.SUCCEEDED):
                self._failures.pop(issue.id, None)
            case facts.RunFinished(issue=issue) if _is_failure(fact.status, fact.stopped_for):
                self._note(issue, fact.error_kind, fact.error, fact.run_id)
            case facts.TransitionCompleted(issue=issue, lifecycle="handoff", error=str(error)):
                self._note(issue, "handoff_failed", error, None)
            case facts.TransitionCompleted(issue=issue, lifecycle="handoff"):
                self._failures.pop(issue.id, None)
            case _:
                pass

    def _note(
        self, issue: Issue, kind: str | None, message: str | None, run_id: str | None
    ) -> None:
        self._failures.pop(issue.id, None)
        self._failures[issue.id] = FailureView(
            kind=kind, message=message or "", at=self._clock(), run_id=run_id
        )
        if len(self._failures) > REMEMBERED_ISSUES:
            del self._failures[next(iter(self._failures))]


async def recorded_failures(store: Store, issues: Iterable[Issue]) -> dict[IssueId, FailureView]:
    """Return why each of these issues failed last, as far as history tells. Raises StoreError."""
    found: dict[IssueId, FailureView] = {}
    for issue in issues:
        for row in await store.history(issue=issue.identifier, limit=_HISTORY_ROWS):
            if row.issue_id != issue.id:
                continue
            failed = _is_failure(row.status, row.stopped_for)
            if failed:
                found[issue.id] = FailureView(
                    kind=row.error_kind,
                    message=row.error or "",
                    at=row.finished_at or row.started_at,
                    run_id=row.run_id,
                )
            if failed or row.status is RunStatus.SUCCEEDED:
                break
    return found


def _is_failure(status: RunStatus, stopped_for: StopReason | None) -> bool:
    return status in _FAILED and stopped_for is None
