"""Budgets: how much an issue or a day may use, and how much runs, issues and the day have used.

Rule 1: a run reports what it has used since it began. What is more than it reported before counts
for its issue and for the day.
Rule 2: what a run has used is on record RECORD_INTERVAL after it was reported, and at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import NOTHING, IssueId, RunId, Spending
from sortie.model.numbers import credits_text, dollars_text, tokens_text
from sortie.scheduler.records import RecordSpending

WARNING_SHARE = 0.8
"""The share of a limit from which there is a warning."""

OF_ISSUE = {
    "tokens": "agent.max_tokens",
    "credits": "agent.max_credits",
    "cost_usd": "agent.max_cost_usd",
}
OF_DAY = {"credits": "budget.daily_credits", "cost_usd": "budget.daily_cost_usd"}

_AMOUNT_TEXTS: Mapping[str, Callable[[float], str]] = {
    "tokens": tokens_text,
    "credits": credits_text,
    "cost_usd": dollars_text,
}


class Used(Struct, frozen=True, kw_only=True):
    """How much of one limit is used; ``key`` is the setting."""

    key: str
    what: str
    used: float
    limit: float

    @property
    def used_text(self) -> str:
        """What is used, with its unit."""
        return _AMOUNT_TEXTS[self.what](self.used)

    @property
    def limit_text(self) -> str:
        """The limit, with its unit."""
        return _AMOUNT_TEXTS[self.what](self.limit)

    @property
    def sentence(self) -> str:
        """Say of an issue that it has reached the limit."""
        return f"it has used {self.used_text}, and {self.key} allows {self.limit_text}"


class Allowance(Struct, frozen=True, kw_only=True):
    """Limits to what may be used; 0 is none. What is not known exceeds nothing."""

    tokens: int = 0
    credits: float = 0.0
    cost_usd: float = 0.0

    def reached(self, spent: Spending, keys: Mapping[str, str]) -> Used | None:
        """Return the first limit that is reached."""
        return next((u for u in self._used(spent, keys) if u.used >= u.limit), None)

    def warnings(
        self, before: Spending, after: Spending, keys: Mapping[str, str]
    ) -> Iterator[Used]:
        """Yield the limits of which what is used has just passed the share WARNING_SHARE."""
        passed = {u.key for u in self._used(before, keys) if u.used >= WARNING_SHARE * u.limit}
        for used in self._used(after, keys):
            if used.used >= WARNING_SHARE * used.limit and used.key not in passed:
                yield used

    def limits(self, keys: Mapping[str, str]) -> dict[str, float]:
        """Return the limits that are set, by what they limit."""
        return {what: limit for what in keys if (limit := getattr(self, what)) > 0}

    def _used(self, spent: Spending, keys: Mapping[str, str]) -> Iterator[Used]:
        for what, key in keys.items():
            limit, used = getattr(self, what), getattr(spent, what)
            if limit > 0 and used is not None:
                yield Used(key=key, what=what, used=used, limit=limit)


NO_LIMITS = Allowance()


class BudgetStanding(Struct, frozen=True, kw_only=True):
    """What an issue and the day have used and may use, by what is limited; ``sessions`` are the
    runs of the issue in which a turn began."""

    of_issue: Spending
    issue_limits: Mapping[str, float]
    of_day: Spending
    day_limits: Mapping[str, float]
    sessions: int


RECORD_INTERVAL = 5.0
"""Seconds within which a run's spending is recorded once; a crash loses no more than that."""


class RunSpending(Struct, frozen=True, kw_only=True):
    spent: Spending = NOTHING
    recorded: Spending = NOTHING
    recorded_at: float | None = None
    floor: Spending = NOTHING


class Ledger:
    """Adds up what runs report; ``issues`` holds the sums by issue."""

    def __init__(self, issues: Mapping[IssueId, Spending], today: Spending) -> None:
        self.issues = dict(issues)
        self.today = today
        self._runs: dict[RunId, RunSpending] = {}

    def of_issue(self, issue_id: IssueId) -> Spending:
        """Return what counts against an issue's limits."""
        return self.issues.get(issue_id, NOTHING)

    def tell(self, run_id: RunId, issue_id: IssueId, spent: Spending) -> None:
        """Take in what a run has used since it began."""
        run = self._runs.get(run_id, RunSpending())
        more = spent.at_least(run.floor) - run.spent
        if (known := run.spent + more) == run.spent:
            return
        self._runs[run_id] = replace(run, spent=known)
        self.issues[issue_id] = self.of_issue(issue_id) + more
        self.today += more

    def take_over(self, run_id: RunId, spent: Spending) -> None:
        """Go on with a run of which so much is on record, and counts already: what it has used of
        that in its turn is told anew."""
        self._runs[run_id] = RunSpending(spent=spent, recorded=spent, floor=spent)

    def record(self, run_id: RunId, now: float) -> Iterator[RecordSpending]:
        """Yield the record of a run's spending, if there is news and RECORD_INTERVAL has passed."""
        run = self._runs.get(run_id)
        if run is None or run.spent == run.recorded:
            return
        if run.recorded_at is None or now - run.recorded_at >= RECORD_INTERVAL:
            yield self._recorded(run_id, run, now)

    def record_all(self, now: float) -> Iterator[RecordSpending]:
        """Yield the records of all spending that is not on record yet."""
        for run_id, run in self._runs.items():
            if run.spent != run.recorded:
                yield self._recorded(run_id, run, now)

    def end(self, run_id: RunId) -> Iterator[RecordSpending]:
        """Forget a run that is over; yield what is not on record of it yet."""
        run = self._runs.pop(run_id, None)
        if run is not None and run.spent != run.recorded:
            yield RecordSpending(run_id=run_id, spent=run.spent)

    def forget(self, issue_id: IssueId) -> bool:
        """Forget what an issue has used; tell whether anything was known."""
        return self.issues.pop(issue_id, None) is not None

    def _recorded(self, run_id: RunId, run: RunSpending, now: float) -> RecordSpending:
        self._runs[run_id] = replace(run, recorded=run.spent, recorded_at=now)
        return RecordSpending(run_id=run_id, spent=run.spent)
