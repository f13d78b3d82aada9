"""What agents use, reckoned beside the scheduler.

Rule: no run is started of an issue that has used all it may, and none goes on that was told of; a
crash loses at most what was told within RECORD_INTERVAL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sortie.model import NOTHING, IssueId, RunId, Spending
from sortie.scheduler import Policy
from sortie.scheduler import records as rec
from sortie.scheduler.budgets import RECORD_INTERVAL, Ledger
from sortie.scheduler.claims import Claim, Running, Starting


@dataclass(slots=True)
class _Told:
    issue_id: IssueId
    spent: Spending = NOTHING
    at: float = 0.0
    recorded: Spending = NOTHING
    recorded_at: float = -RECORD_INTERVAL


@dataclass(slots=True)
class Spent:
    """What runs have told, and what is on record of it."""

    issues: dict[IssueId, Spending] = field(default_factory=dict)
    runs: dict[RunId, _Told] = field(default_factory=dict)
    today: Spending = NOTHING

    def boot(self, on_disk: dict[IssueId, Spending]) -> None:
        """Know in a new life what is on record."""
        self.issues, self.runs = dict(on_disk), {}

    def use(self, run_id: RunId, issue_id: IssueId, more: Spending, now: float) -> Spending:
        """Let a run use more; return what it has used by then."""
        told = self.runs.setdefault(run_id, _Told(issue_id))
        told.spent, told.at = told.spent + more, now
        self.today += more
        if more != NOTHING:
            self.issues[issue_id] = self.issues.get(issue_id, NOTHING) + more
        return told.spent

    def of(self, run_id: RunId) -> Spending:
        """Return what a run has used."""
        return self.runs[run_id].spent if run_id in self.runs else NOTHING

    def write(self, record: rec.Record, now: float) -> None:
        """Hear what is put on record."""
        match record:
            case rec.ResetBudget(issue_id=issue_id):
                self.issues.pop(issue_id, None)
            case rec.RecordSpending(run_id=run_id, spent=spent):
                told = self.runs[run_id]
                assert spent == told.spent, "recorded what was not told"
                told.recorded, told.recorded_at = spent, now
            case rec.RecordExit(run_id=run_id) if run_id in self.runs:
                told = self.runs.pop(run_id)
                assert told.recorded == told.spent, "what a run used is not on record"
            case _:
                pass

    def check(
        self,
        policy: Policy,
        claims: Iterable[Claim],
        ledger: Ledger,
        on_disk: Mapping[IssueId, Spending],
    ) -> None:
        """What must hold after every event."""
        for claim in claims:
            if isinstance(claim, Starting | Running):
                assert not self.is_over(claim.issue.id, policy), "runs beyond what it may use"
        assert ledger.issues == self.issues, "spending is reckoned otherwise"
        assert _known(ledger.today) == _known(self.today), "the day is reckoned otherwise"
        rows = dict(on_disk)
        for told in self.runs.values():
            if (more := told.spent - told.recorded) != NOTHING and told.spent != told.recorded:
                rows[told.issue_id] = rows.get(told.issue_id, NOTHING) + more
        assert rows == self.issues, "spending is recorded otherwise"
        for told in self.runs.values():
            late = told.at - told.recorded_at >= RECORD_INTERVAL
            assert told.recorded == told.spent or not late, "spending is recorded too late"

    def is_day_over(self, policy: Policy) -> bool:
        """Tell whether the budget of the day is used up."""
        spent, allowed = self.today.credits, policy.per_day.credits
        return spent is not None and 0 < allowed <= spent

    def is_over(self, issue_id: IssueId, policy: Policy) -> bool:
        """Tell whether an issue has used all that it may."""
        spent, allowed = self.issues.get(issue_id, NOTHING), policy.per_issue
        pairs = (
            (spent.tokens, allowed.tokens),
            (spent.credits, allowed.credits),
            (spent.cost_usd, allowed.cost_usd),
        )
        return any(used is not None and 0 < limit <= used for used, limit in pairs)


def _known(spent: Spending) -> tuple[float, ...]:
    """Return amounts, 0 where none was told: of what a run told before, it uses 0 on a new day."""
    return (spent.tokens or 0, spent.credits or 0.0, spent.cost_usd or 0.0)
