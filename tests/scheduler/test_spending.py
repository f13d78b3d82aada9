"""What an issue may use over all its runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
from sortie.scheduler.allowance import Allowance
from sortie.scheduler.ledger import RECORD_INTERVAL
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

    (stop,) = only(driver.tell(ev.AgentUsed(run_id, spent)), do.StopWorker)
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


def test_below_the_limit_nothing_happens() -> None:
    """What is unknown counts as nothing, and so does what is not limited."""
    driver = limited()
    run_id = driver.begin()

    decisions = driver.tell(ev.AgentUsed(run_id, tokens(79)))
    decisions += driver.tell(ev.AgentUsed(run_id, replace(tokens(79), credits=1e6, cost_usd=1e6)))

    assert only(decisions, do.StopWorker) == only(decisions, facts.BudgetRunsLow) == []


@pytest.mark.parametrize("reborn", [False, True])
def test_all_runs_of_an_issue_count(reborn: bool) -> None:
    """Over continuations and restarts; what was told is on record, also of a run that was cut."""
    driver = limited()
    first = driver.begin()
    driver.tell(ev.AgentUsed(first, tokens(60)))
    if reborn:
        driver.die()
    else:
        ends(driver, first, tokens(60))
    (second,) = starts(driver.pass_time() + driver.pass_time(1))

    decisions = driver.tell(ev.AgentUsed(second.run_id, tokens(40)))

    assert len(only(decisions, do.StopWorker)) == 1
    assert driver.disk.spent == {A: tokens(100)}


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
    driver.tell(ev.AgentUsed(run_id, tokens(100)))

    decisions = ends(driver, run_id, tokens(100))

    assert len(only(decisions, do.Transition)) == 1


def test_a_warning_comes_once_at_eighty_percent() -> None:
    """It names the setting, what is used and the issue."""
    driver = limited()
    run_id = driver.begin()

    told = [
        note
        for count in (79, 80, 90, 99)
        for note in only(driver.tell(ev.AgentUsed(run_id, tokens(count))), facts.BudgetRunsLow)
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
    driver.tell(ev.AgentUsed(run_id, tokens(100)))
    driver.end(run_id, Stopped())

    driver.settle(driver.tell(ev.PolicyChanged(replace(driver.policy, max_sessions=9))))
    assert driver.holds() is SPENT
    raised = replace(driver.policy, per_issue=Allowance(tokens=150))
    decisions = driver.settle(driver.tell(ev.PolicyChanged(raised)))
    (again,) = starts(decisions + driver.pass_time())

    assert driver.disk.spent == {A: tokens(100)}
    assert len(only(driver.tell(ev.AgentUsed(again.run_id, tokens(50))), do.StopWorker)) == 1


def test_an_operators_retry_begins_the_budget_anew() -> None:
    """As with any hold that a person ends."""
    driver = limited()
    run_id = driver.begin()
    driver.tell(ev.AgentUsed(run_id, tokens(100)))
    driver.end(run_id, Stopped())

    driver.settle(driver.tell(ev.RetryAsked("a")))

    assert driver.disk.spent == {}


def test_a_lowered_limit_stops_what_runs() -> None:
    """Limits apply at once."""
    driver = limited(Allowance())
    run_id = driver.begin()
    driver.tell(ev.AgentUsed(run_id, tokens(100)))

    decisions = driver.tell(ev.PolicyChanged(replace(driver.policy, per_issue=TOKENS)))

    assert len(only(decisions, do.StopWorker)) == 1


def test_a_finished_issue_is_forgotten() -> None:
    """What it used counts no more once it is terminal."""
    driver = limited()
    run_id = driver.begin()
    driver.tell(ev.AgentUsed(run_id, tokens(50)))
    driver.tell(ev.IssueMoved(run_id, issue(state="Done")))

    driver.put(issue(state="Done"))
    ends(driver, run_id, tokens(50))

    assert driver.disk.spent == {}


def test_records_are_few_and_none_is_lost() -> None:
    """Within the interval one record is enough; a run or day that ends brings the rest."""
    driver = limited(Allowance())
    run_id = driver.begin()

    for count in (10, 20, 30):
        driver.tell(ev.AgentUsed(run_id, tokens(count)))
    assert driver.disk.spent == {A: tokens(10)}
    driver.now += RECORD_INTERVAL
    driver.tell(ev.AgentUsed(run_id, tokens(40)))
    assert driver.disk.spent == {A: tokens(40)}
    driver.tell(ev.AgentUsed(run_id, tokens(50)))
    driver.tell(ev.DayBegan("2026-11-23"))
    assert driver.disk.spent == {A: tokens(50)}
    ends(driver, run_id, tokens(60))

    assert driver.disk.spent == {A: tokens(60)}
    assert driver.disk.days["2026-11-23"] == tokens(10)


def test_a_report_that_knows_less_takes_nothing_back() -> None:
    """What was told stays told."""
    driver = limited(Allowance())
    run_id = driver.begin()
    driver.tell(ev.AgentUsed(run_id, replace(tokens(10), credits=1.0)))

    ends(driver, run_id, tokens(20))

    assert driver.disk.spent == {A: replace(tokens(20), credits=1.0)}


def test_an_estimate_that_was_too_high_is_taken_back() -> None:
    """The agent's own cost replaces what its tokens were estimated to cost."""
    driver = limited(Allowance(cost_usd=10.0))
    run_id = driver.begin()
    driver.tell(ev.AgentUsed(run_id, Spending(cost_usd=6.0, estimated_usd=6.0)))

    ends(driver, run_id, Spending(cost_usd=4.0, estimated_usd=0.0))

    assert driver.disk.spent == {A: Spending(cost_usd=4.0, estimated_usd=0.0)}
