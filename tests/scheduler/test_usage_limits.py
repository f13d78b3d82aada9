"""What follows when an agent's account may use no more for now."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from sortie import facts
from sortie.model import ErrorKind, Failed, RunId, RunReport, RunStatus, Spending, Trigger
from sortie.scheduler import Decision
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Waiting
from sortie.scheduler.timing import LIMIT_BASE, LIMIT_MOST, PROBE_TRUST
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


@pytest.mark.parametrize("proof", ["used", "second turn", "end", "time"])
def test_one_run_tries_first_and_then_all_follow(proof: str) -> None:
    """Whatever shows that the limit is over."""
    driver = limited(others=2)
    (probe,) = starts(driver.pass_time(3600))
    driver.tell(ev.TurnStarted(probe.run_id, 1))
    assert starts(driver.pass_time(1)) == []

    match proof:
        case "used":
            told = driver.settle(
                driver.tell(ev.SpendingReported(probe.run_id, Spending(credits=0.1)))
            )
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
