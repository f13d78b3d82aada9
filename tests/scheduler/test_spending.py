"""What an issue may use over all its runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie import facts
from sortie.model import (
    Finish,
    Finished,
    HoldReason,
    RunId,
    RunReport,
    RunStatus,
    Spending,
    Stopped,
    StopReason,
)
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.budgets import Allowance
from tests.scheduler.driver import POLICY, issue, only, starts
from tests.scheduler.lives import A, Lives

TOKENS = Allowance(tokens=100)
SPENT = HoldReason.USAGE_BUDGET_EXHAUSTED


def limited(allowance: Allowance = TOKENS, handoff_state: str | None = None) -> Lives:
    return Lives(replace(POLICY, per_issue=allowance, handoff_state=handoff_state))


def tokens(count: int) -> Spending:
    return Spending(output_tokens=count)


def ends(driver: Lives, run_id: RunId, spent: Spending) -> list[do.Decision]:
    """Let a run end with its turns used."""
    report = RunReport(end=Finished(finish=Finish.TURNS_USED), turns=1, spent=spent)
    return driver.settle(driver.tell(ev.WorkerExited(run_id, report)))


@pytest.mark.parametrize(
    ("allowance", "spent", "detail"),
    [
        (TOKENS, tokens(100), "it has used 100 tokens, and agent.max_tokens allows 100 tokens"),
        (
            Allowance(credits=2.5),
            Spending(credits=2.75),
            "it has used 2.75 credits, and agent.max_credits allows 2.5 credits",
        ),
        (
            Allowance(cost_usd=0.005),
            Spending(cost_usd=1.5),
            "it has used $1.50, and agent.max_cost_usd allows $0.005",
        ),
    ],
)
def test_a_run_that_reaches_a_limit_is_stopped_and_its_issue_held(
    allowance: Allowance, spent: Spending, detail: str
) -> None:
    """As soon as the agent tells; the sentence names the setting."""
    driver = limited(allowance)
    run_id = driver.begin()

    (stop,) = only(driver.tell(ev.SpendingReported(run_id, spent)), do.StopWorker)
    decisions = driver.end(run_id, Stopped())

    assert stop == do.StopWorker(run_id, issue(), StopReason.BUDGET)
    (record,) = [d for d in decisions if isinstance(d, rec.RecordExit)]
    assert (record.status, record.error, record.stopped_for) == (
        RunStatus.CANCELLED,
        f"the run was stopped: {detail}",
        StopReason.BUDGET,
    )
    assert driver.holds() is SPENT
    assert driver.disk.holds[A].detail == detail


def test_a_spent_issue_is_held_before_its_next_run() -> None:
    """A run that ends well at the limit has no successor, in the next life either."""
    driver = limited()
    ends(driver, driver.begin(), tokens(100))

    assert driver.holds() is SPENT

    driver.disk.write(rec.ForgetHold(issue_id=A), driver.now)
    driver.die()
    assert starts(driver.pass_time()) == []
    assert driver.holds() is SPENT


def test_work_that_is_done_is_handed_off_all_the_same() -> None:
    """A run that was told to stop for its budget, but had used its turns, ended well."""
    driver = limited(handoff_state="Review")
    run_id = driver.begin()
    driver.tell(ev.SpendingReported(run_id, tokens(100)))

    decisions = ends(driver, run_id, tokens(100))

    assert len(only(decisions, do.HandOff)) == 1


def test_a_warning_comes_once_at_eighty_percent() -> None:
    """It names the setting, what is used and the issue."""
    driver = limited()
    run_id = driver.begin()

    told = [
        note
        for count in (79, 80, 90, 99)
        for note in only(
            driver.tell(ev.SpendingReported(run_id, tokens(count))), facts.BudgetRunsLow
        )
    ]

    assert told == [
        facts.BudgetRunsLow(
            key="agent.max_tokens", used="80 tokens", limit="100 tokens", issue=issue()
        )
    ]


def test_a_higher_limit_lets_the_issue_go_on_with_what_is_left() -> None:
    """What was used still counts, and a limit that is too low ends no hold."""
    driver = limited()
    run_id = driver.begin()
    driver.tell(ev.SpendingReported(run_id, tokens(100)))
    driver.end(run_id, Stopped())

    driver.settle(driver.tell(ev.PolicyChanged(replace(driver.policy, max_sessions=9))))
    assert driver.holds() is SPENT
    raised = replace(driver.policy, per_issue=Allowance(tokens=150))
    decisions = driver.settle(driver.tell(ev.PolicyChanged(raised)))
    (again,) = starts(decisions + driver.pass_time())

    assert driver.disk.spent == {A: tokens(100)}
    assert len(only(driver.tell(ev.SpendingReported(again.run_id, tokens(50))), do.StopWorker)) == 1


def test_an_operators_retry_begins_the_budget_anew() -> None:
    """As with any hold that a person ends."""
    driver = limited()
    run_id = driver.begin()
    driver.tell(ev.SpendingReported(run_id, tokens(100)))
    driver.end(run_id, Stopped())

    driver.settle(driver.tell(ev.RetryAsked("a")))

    assert driver.disk.spent == {}


def test_an_estimate_that_was_too_high_is_taken_back() -> None:
    """The agent's own cost replaces what its tokens were estimated to cost."""
    driver = limited(Allowance(cost_usd=10.0))
    run_id = driver.begin()
    driver.tell(ev.SpendingReported(run_id, Spending(cost_usd=6.0, estimated_usd=6.0)))

    ends(driver, run_id, Spending(cost_usd=4.0, estimated_usd=0.0))

    assert driver.disk.spent == {A: Spending(cost_usd=4.0, estimated_usd=0.0)}
