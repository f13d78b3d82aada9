"""What follows when an agent's account may use no more for now."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sortie import facts
from sortie.model import ErrorKind, Failed, RunId, RunReport, RunStatus, Spending, Trigger
from sortie.scheduler import Decision
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Waiting
from sortie.scheduler.rules import LIMIT_BASE, LIMIT_MOST, LONGEST_LIMIT, PROBE_TRUST
from sortie.scheduler.usage_limits import UsageLimits
from tests.scheduler.driver import POLICY, issue, only, starts
from tests.scheduler.lives import A, Lives

END = datetime(2026, 6, 1, 17, tzinfo=UTC)
MET = Failed(kind=ErrorKind.USAGE_LIMIT, message="limit reached")


def meet(driver: Lives, run_id: RunId, seconds: float | None = None) -> list[Decision]:
    """Let a run meet its account's limit, which ends in so many seconds."""
    at = None if seconds is None else END
    account = driver.policy.account
    told = driver.tell(ev.UsageLimitMet(run_id, account, "limit reached", at, seconds))
    return told + driver.end(run_id, MET)


def limited(seconds: float | None = 3600.0, *, others: int = 0) -> Lives:
    """Return a daemon whose agent's account is limited, with issues that wait."""
    driver = Lives(replace(POLICY, max_concurrent_agents=3, max_sessions=1))
    run_id = driver.begin()
    driver.put(*(issue(name) for name in "bcd"[:others]))
    meet(driver, run_id, seconds)
    driver.settle(driver.tell(ev.RefreshRequested()))
    return driver


def works(driver: Lives) -> list[RunId]:
    return [claim.run_id for claim in driver.scheduler.snapshot(driver.now).worked]


def test_no_run_starts_before_the_reset_and_no_attempt_is_burnt() -> None:
    """The issue waits with its attempt, and its session does not count."""
    driver = limited(others=2)

    assert starts(driver.pass_time(3599)) == []
    claim = driver.claim()
    assert isinstance(claim, Waiting)
    assert (claim.trigger, claim.streak.failures) == (Trigger.USAGE_LIMIT, 0)
    assert claim.reason == "the usage limit of kiro is reached; it ends at 2026-06-01T17:00:00Z"
    assert driver.disk.sessions == {A: 0}

    (run,) = starts(driver.pass_time(1))
    assert run.streak.failures == 0


def test_the_run_is_recorded_as_interrupted() -> None:
    """It is no failure, and what the agent said stands with it."""
    driver = Lives()
    decisions = meet(driver, driver.begin(), 60.0)

    (record,) = [d for d in decisions if isinstance(d, rec.RecordExit)]
    assert (record.status, record.error_kind, record.error) == (
        RunStatus.INTERRUPTED,
        ErrorKind.USAGE_LIMIT,
        "limit reached",
    )
    assert only(decisions, facts.AgentLimited) == [
        facts.AgentLimited(agent="kiro", error="limit reached", seconds=60.0, resets_at=END)
    ]


@pytest.mark.parametrize("seconds", [3600.0, None])
def test_a_limit_survives_a_restart(seconds: float | None) -> None:
    """The next life starts nothing before its end either."""
    driver = limited(seconds)
    driver.now += 100
    driver.die()

    assert starts(driver.pass_time() + driver.pass_time((seconds or LIMIT_BASE) - 101)) == []
    assert len(starts(driver.pass_time(1))) == 1
    assert len(driver.disk.limits) == 1


def test_an_unknown_end_is_waited_for_longer_each_time() -> None:
    """Up to a bound, and only by one run at a time."""
    driver = limited(None, others=2)
    waits = []
    for _ in range(6):
        before = driver.now
        while not (run := starts(driver.pass_time())):
            driver.now = max(driver.now + 1, min(driver.scheduler.wakeup_at(), driver.now + 60))
        assert len(run) == 1
        waits.append(driver.now - before)
        meet(driver, run[0].run_id)

    expected = [LIMIT_BASE * 2**n for n in range(4)] + [LIMIT_MOST] * 2
    assert waits == pytest.approx(expected, abs=61)


@pytest.mark.parametrize("seconds", [0.0, -60.0, None])
def test_an_end_that_has_passed_is_unknown(seconds: float | None) -> None:
    """Clocks differ, and messages are late."""
    driver = limited(seconds)

    (limit,) = driver.disk.limits.values()
    assert (limit.delay, limit.resets_at) == (LIMIT_BASE, None)


def test_an_absurd_end_is_bounded() -> None:
    """No plan lasts for years."""
    (limit,) = limited(1e12).disk.limits.values()

    assert limit.delay == LONGEST_LIMIT


def test_several_runs_that_meet_one_limit_make_it_no_longer() -> None:
    """But what one of them knows of its end counts."""
    driver = Lives(replace(POLICY, max_concurrent_agents=3))
    runs = driver.start(issue("a"), issue("b"), issue("c"))
    for run in runs:
        driver.tell(ev.TurnStarted(run.run_id, 1))

    meet(driver, runs[0].run_id)
    driver.now += 10
    assert only(meet(driver, runs[1].run_id), rec.RecordLimit) == []
    (told,) = only(meet(driver, runs[2].run_id, 1000.0), rec.RecordLimit)

    assert isinstance(told, rec.RecordLimit)
    assert (told.delay, told.times, told.resets_at) == (1000.0, 1, END)


@pytest.mark.parametrize("proof", ["used", "second turn", "end", "time"])
def test_one_run_tries_first_and_then_all_follow(proof: str) -> None:
    """Whatever shows that the limit is over."""
    driver = limited(others=2)
    (probe,) = starts(driver.pass_time(3600))
    driver.tell(ev.TurnStarted(probe.run_id, 1))
    assert starts(driver.pass_time(1)) == []

    match proof:
        case "used":
            told = driver.settle(driver.tell(ev.AgentUsed(probe.run_id, Spending(credits=0.1))))
        case "second turn":
            told = driver.settle(driver.tell(ev.TurnStarted(probe.run_id, 2)))
        case "end":
            told = driver.end(probe.run_id)
        case _:
            told = driver.pass_time(PROBE_TRUST)

    assert len(only(told, facts.AgentLimitEnded)) == 1
    assert {start.issue.id for start in starts(told)} == {"b", "c"}
    assert driver.disk.limits == {}


def test_a_try_that_shows_nothing_is_followed_by_another() -> None:
    """A run that fails before its first turn says nothing of the limit."""
    driver = limited(others=1)
    (probe,) = starts(driver.pass_time(3600))

    decisions = driver.settle(
        driver.tell(
            ev.WorkerExited(
                probe.run_id,
                RunReport(end=Failed(kind=ErrorKind.HOOK_FAILED, message="no")),
            )
        )
    )

    assert [start.issue.id for start in starts(decisions)] == ["b"]
    assert len(driver.disk.limits) == 1


def test_runs_under_way_go_on() -> None:
    """They may not need more than they have, and prove nothing by it."""
    driver = Lives(replace(POLICY, max_concurrent_agents=3))
    first, second = driver.start(issue("a"), issue("b"))
    for run in (first, second):
        driver.tell(ev.TurnStarted(run.run_id, 1))

    meet(driver, first.run_id, 3600.0)
    driver.tell(ev.TurnStarted(second.run_id, 2))
    driver.tell(ev.AgentUsed(second.run_id, Spending(credits=1.0)))

    assert works(driver) == [second.run_id]
    assert len(driver.disk.limits) == 1


def test_an_operator_has_it_tried_at_once() -> None:
    """Somebody who has bought more says so by resume."""
    driver = limited()

    decisions = driver.settle(driver.tell(ev.PauseAsked(False, 1)))

    assert len(starts(decisions)) == 1
    (answer,) = [d for d in decisions if isinstance(d, do.AnswerCommand)]
    assert answer.message == "dispatch goes on, and the usage limit of kiro is tried anew"


def test_another_agent_has_another_account() -> None:
    """A change of the settings leaves the limit behind, and comes back to it."""
    driver = limited()
    other = replace(driver.policy, agent="other", account="other")

    decisions = driver.settle(driver.tell(ev.PolicyChanged(other)))
    assert len(starts(decisions)) == 1
    assert list(driver.disk.limits) == ["kiro"]


def test_the_time_of_day_ends_it_early() -> None:
    """The machine has slept, and its own clock has not gone on."""
    driver = limited()

    decisions = driver.settle(driver.tell(ev.UsageLimitPassed("kiro")))

    assert len(starts(decisions)) == 1


def test_it_is_explained() -> None:
    """By the gate that decides, with the time at which it opens."""
    driver = limited(others=1)

    told = driver.scheduler.explain_issue("b", driver.now)

    assert not isinstance(told, str)
    assert told.next_at == 3600.0
    closed = [verdict.gate for verdict in told.gates if verdict.reason is not None]
    assert closed == ["usage limit"]
    assert driver.scheduler.wakeup_at() < math.inf


def test_a_limit_that_is_met_again_is_the_same_limit() -> None:
    """It counts since it was first met, until it is lifted."""
    limits, now = UsageLimits(), 0.0
    for _ in range(3):
        again = limits.met("kiro", "enough", now)
        now = limits.wakeup_at()
        limits.pass_time(now)
    limits.lift("kiro")
    anew = limits.met("kiro", "enough", now)

    assert again is not None
    assert anew is not None
    assert (again.since, again.times) == (0.0, 3)
    assert (anew.since, anew.times) == (now, 1)
