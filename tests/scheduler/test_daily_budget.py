"""What may be used in a day, over all issues."""

from __future__ import annotations

from msgspec.structs import replace

from sortie import facts
from sortie.model import RunId, Spending
from sortie.scheduler import Decision
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.budgets import Allowance
from tests.scheduler.driver import POLICY, issue, only, starts
from tests.scheduler.lives import Lives

TODAY, TOMORROW = "2026-06-01", "2026-06-02"
SPENT = (
    "budget.daily_credits is used up: 5 credits of 5 credits; runs start again at midnight"
    " (Europe/Berlin)"
)


def daily() -> Lives:
    policy = replace(
        POLICY,
        per_day=Allowance(credits=5.0, cost_usd=10.0),
        zone="Europe/Berlin",
        max_concurrent_agents=1,
    )
    driver = Lives(policy)
    driver.tell(ev.DayBegan(TODAY))
    return driver


def use(driver: Lives, run_id: RunId, amount: float) -> list[Decision]:
    return driver.tell(ev.SpendingReported(run_id, Spending(credits=amount)))


def test_a_spent_budget_stops_dispatch_until_the_next_day() -> None:
    """What runs goes on; what waits and what is queued says why."""
    driver = daily()
    driver.put(issue("b"))
    run_id = driver.begin()
    told = use(driver, run_id, 5.0)
    assert only(told, do.StopWorker) == []
    assert only(told, facts.BudgetSpent) == [
        facts.BudgetSpent(key="budget.daily_credits", used="5 credits", limit="5 credits")
    ]

    driver.end(run_id)
    assert starts(driver.pass_time(2) + driver.pass_time(3600)) == []
    explained = driver.scheduler.explain_issue("b", driver.now)
    assert not isinstance(explained, str)
    assert [v.reason for v in explained.gates if v.reason] == [SPENT]
    assert driver.scheduler.snapshot(driver.now).day_spent == SPENT

    assert len(starts(driver.settle(driver.tell(ev.DayBegan(TOMORROW))))) == 1


def test_a_budget_counts_what_was_used_before_a_restart() -> None:
    """The day's sum is on record."""
    driver = daily()
    use(driver, driver.begin(), 5.0)

    driver.die()
    spent = driver.disk.days[TODAY]
    driver.tell(ev.DayBegan(TODAY, spent))

    assert spent == Spending(credits=5.0)
    assert starts(driver.pass_time()) == []


def test_a_warning_comes_at_eighty_percent() -> None:
    """For the day, without an issue."""
    driver = daily()
    run_id = driver.begin()

    told = [n for a in (3.9, 4.0, 4.5) for n in only(use(driver, run_id, a), facts.BudgetRunsLow)]

    assert told == [
        facts.BudgetRunsLow(key="budget.daily_credits", used="4 credits", limit="5 credits")
    ]


def test_a_day_that_comes_again_brings_what_was_used_on_it() -> None:
    """The clock was set back, or the zone is another."""
    driver = daily()
    driver.tell(ev.DayBegan(TOMORROW))
    driver.tell(ev.DayBegan(TODAY, Spending(credits=5.0)))
    driver.put(issue())

    assert starts(driver.settle(driver.tell(ev.RefreshRequested()))) == []
