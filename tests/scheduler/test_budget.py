"""How many runs an issue gets before it is held."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sortie.model import ErrorKind, Failed, Finish, Finished, HoldReason, RunEnd
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Waiting
from tests.scheduler.driver import POLICY, Driver, issue, only, starts
from tests.scheduler.lives import A, Lives

BROKEN = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")
USED = Finished(finish=Finish.TURNS_USED)
UNREADABLE = Finished(finish=Finish.UNREADABLE)
SPENT = HoldReason.SESSION_BUDGET_EXHAUSTED


def limited(sessions: int) -> Lives:
    return Lives(replace(POLICY, max_sessions=sessions))


def runs_until_held(driver: Lives, end: RunEnd, *, reborn: bool = False) -> int:
    """Let the issue's runs end so, each after a turn, until it is held; return how many began."""
    (run,) = driver.start(issue())
    for count in range(1, 9):
        driver.tell(ev.TurnStarted(run.run_id, 1))
        driver.tell(ev.TurnStarted(run.run_id, 2))
        driver.end(run.run_id, end)
        if reborn:
            driver.die()
        if driver.holds() is not None:
            return count
        again = driver.pass_time() + driver.pass_time(3600)
        (run,) = starts(again)
    raise AssertionError("it was never held")


@pytest.mark.parametrize("reborn", [False, True], ids=["same life", "next life"])
@pytest.mark.parametrize("end", [BROKEN, USED, UNREADABLE])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_an_issue_gets_as_many_sessions_as_the_limit_says(
    limit: int, end: RunEnd, reborn: bool
) -> None:
    """Failures and continuations count alike, once a run however many turns, over restarts too."""
    driver = limited(limit)

    runs = runs_until_held(driver, end, reborn=reborn)

    assert (runs, driver.holds()) == (limit, SPENT)


def test_an_unlimited_issue_is_never_held_for_its_budget() -> None:
    """0 is no limit."""
    driver = limited(0)

    with pytest.raises(AssertionError, match="never held"):
        runs_until_held(driver, USED)


def test_a_cut_session_counts_in_the_next_life() -> None:
    """A run in which a turn started is counted when the daemon dies in it."""
    driver = limited(1)
    driver.begin()

    driver.die()
    decisions = driver.pass_time()

    assert starts(decisions) == []
    assert driver.holds() is SPENT


def test_a_run_without_a_turn_costs_nothing_over_restarts() -> None:
    """Runs that end before their first turn may be as many as they like."""
    driver = limited(1)
    for _ in range(3):
        (run,) = driver.start(issue())
        driver.end(run.run_id, Failed(kind=ErrorKind.HOOK_FAILED, message="no"))
        driver.die()
        driver.now += 3600
    (run,) = driver.start(issue())

    assert driver.disk.sessions == {}
    assert driver.holds() is None


@pytest.mark.parametrize("limit", [1, 2])
def test_the_budget_is_checked_before_every_run(limit: int) -> None:
    """Also where a lowered limit finds a wait that is due, which is forgotten then."""
    driver = limited(0)
    for _ in range(2):
        run_id = driver.begin()
        driver.end(run_id, USED)
        driver.now += 1
    assert isinstance(driver.claim(), Waiting)

    driver.settle(driver.tell(ev.PolicyChanged(replace(POLICY, max_sessions=limit))))
    decisions = driver.pass_time(1)

    assert starts(decisions) == []
    assert driver.holds() is SPENT
    assert driver.disk.retries == {}


def test_a_released_hold_gives_the_whole_budget_again() -> None:
    """After a change of content the issue has as many sessions as at first."""
    driver = limited(2)
    runs_until_held(driver, USED)
    driver.put(issue(title="Mend it otherwise"))
    (first,) = starts(driver.pass_time(30))
    driver.tell(ev.TurnStarted(first.run_id, 1))
    driver.end(first.run_id, BROKEN)
    (second,) = starts(driver.pass_time(3600))
    driver.tell(ev.TurnStarted(second.run_id, 1))
    before = driver.holds()

    driver.end(second.run_id, BROKEN)

    assert (before, driver.holds()) == (None, SPENT)


@pytest.mark.parametrize(
    ("limit", "message"),
    [(0, "A is due now"), (3, "A is due now"), (2, "A is due now, but it had all its sessions")],
)
def test_a_retry_of_a_wait_keeps_the_count_and_says_where_it_is_used_up(
    limit: int, message: str
) -> None:
    """Only a hold's end gives a fresh budget: a wait over a lowered limit is held, not run."""
    driver = limited(0)
    for _ in range(2):
        driver.end(driver.begin(), USED)
        driver.now += 1
    driver.settle(driver.tell(ev.PauseAsked(True)))
    driver.tell(ev.PolicyChanged(replace(POLICY, max_sessions=limit)))
    driver.tell(ev.PauseAsked(False))

    decisions = driver.tell(ev.RetryAsked("a", 1))

    assert only(decisions, do.AnswerCommand) == [do.AnswerCommand(1, "done", message)]
    assert driver.disk.sessions == {A: 2}
    assert (driver.holds() is SPENT) == (limit == 2)


def test_a_retry_of_a_hold_gives_the_whole_budget_again() -> None:
    """The count begins anew with the release of a hold, whoever releases it."""
    driver = limited(2)
    runs_until_held(driver, USED)

    decisions = driver.tell(ev.RetryAsked("a", 1))

    assert only(decisions, rec.ResetBudget) == [rec.ResetBudget(issue_id=A)]
    assert driver.disk.sessions == {}


@pytest.mark.parametrize("workspace", [False, True])
def test_a_finished_issue_has_no_count_any_more(workspace: bool) -> None:
    """When it is opened again it has its whole budget, whether or not it had a workspace."""
    driver = limited(2)
    run_id = driver.begin()
    if not workspace:
        driver.tell(ev.WorkspaceCleaned(A, (driver.known(),)))
    driver.put(issue(state="Done"))

    driver.end(run_id, Finished(finish=Finish.LEFT_ACTIVE))
    driver.pass_time(30)
    driver.end(run_id)
    driver.pass_time(30)

    assert (driver.disk.sessions, driver.holds()) == ({}, None)


def test_a_fresh_candidate_behind_a_spent_one_still_runs() -> None:
    """Who has no budget left takes no slot from the next in the queue."""
    driver = Driver(replace(POLICY, max_sessions=1, max_concurrent_agents=1))
    (first,) = driver.start(issue("a", priority=1))
    driver.tell(ev.TurnStarted(first.run_id, 1))
    driver.put(issue("b"))
    driver.settle(driver.tell(ev.RefreshRequested()))

    freed = driver.end(first.run_id, BROKEN)

    assert [s.issue.id for s in starts(freed)] == ["b"]
