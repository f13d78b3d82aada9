"""What runs, issues and the day have used.

Rule 1: a run tells what it has used since it began; what that is more than it told before counts
for its issue and for the day.
Rule 2: what is on record follows within RECORD_INTERVAL of a run's telling more, and at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sortie.model import NOTHING, IssueId, RunId, Spending
from sortie.scheduler.records import RecordSpending

RECORD_INTERVAL = 5.0
"""Seconds within which a run's spending is recorded once; a crash loses no more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunSpending:
    spent: Spending = NOTHING
    recorded: Spending = NOTHING
    recorded_at: float | None = None


class Ledger:
    """Adds up what runs tell. ``issues`` are those of which anything is known."""

    def __init__(self, issues: Mapping[IssueId, Spending], today: Spending) -> None:
        self.issues = dict(issues)
        self.today = today
        self._runs: dict[RunId, _RunSpending] = {}

    def of_issue(self, issue_id: IssueId) -> Spending:
        """Return what counts against an issue's limits."""
        return self.issues.get(issue_id, NOTHING)

    def tell(self, run_id: RunId, issue_id: IssueId, spent: Spending) -> None:
        """Take in what a run has used since it began."""
        run = self._runs.get(run_id, _RunSpending())
        more = spent - run.spent
        if (known := run.spent + more) == run.spent:
            return
        self._runs[run_id] = replace(run, spent=known)
        self.issues[issue_id] = self.of_issue(issue_id) + more
        self.today += more

    def record(self, run_id: RunId, now: float) -> Iterator[RecordSpending]:
        """Yield what is to be recorded of a run that has told more, if it is time for that."""
        run = self._runs.get(run_id)
        if run is None or run.spent == run.recorded:
            return
        if run.recorded_at is None or now - run.recorded_at >= RECORD_INTERVAL:
            yield self._recorded(run_id, run, now)

    def record_all(self, now: float) -> Iterator[RecordSpending]:
        """Yield whatever is not on record yet."""
        for run_id, run in self._runs.items():
            if run.spent != run.recorded:
                yield self._recorded(run_id, run, now)

    def end(self, run_id: RunId) -> Iterator[RecordSpending]:
        """Forget a run that is over; yield what is not on record of it yet."""
        run = self._runs.pop(run_id, None)
        if run is not None and run.spent != run.recorded:
            yield RecordSpending(run_id=run_id, spent=run.spent)

    def forget(self, issue_id: IssueId) -> bool:
        """Begin an issue anew, and tell whether anything was known of it."""
        return self.issues.pop(issue_id, None) is not None

    def _recorded(self, run_id: RunId, run: _RunSpending, now: float) -> RecordSpending:
        self._runs[run_id] = replace(run, recorded=run.spent, recorded_at=now)
        return RecordSpending(run_id=run_id, spent=run.spent)
