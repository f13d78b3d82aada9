"""How many runs an issue gets before it is held."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.model import ErrorKind, Failed, Finish, Finished, HoldReason, RunEnd
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.claims import Waiting
from tests.scheduler.driver import POLICY, issue, only, starts
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


def test_a_cut_session_counts_in_the_next_life() -> None:
    """A run in which a turn started is counted when the daemon dies in it."""
    driver = limited(1)
    driver.begin()

    driver.die()
    decisions = driver.pass_time()

    assert starts(decisions) == []
    assert driver.holds() is SPENT


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
