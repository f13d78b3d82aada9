"""What operators ask of the daemon as a whole, and while it is stopping."""

from __future__ import annotations

from sortie.model import HoldReason, Stopped, StopReason
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from tests.scheduler import standings as at
from tests.scheduler.driver import only, starts
from tests.scheduler.lives import Lives


def told(decisions: list[do.Decision]) -> do.AnswerCommand:
    """Return the only answer."""
    (answer,) = only(decisions, do.AnswerCommand)
    assert isinstance(answer, do.AnswerCommand)
    return answer


def by_shutdown() -> Lives:
    return at.stopped_by(StopReason.SHUTDOWN)


def test_pause_and_resume_say_what_goes_on_and_record_a_change_once() -> None:
    """What runs is counted; asking twice records nothing new; waits stay due meanwhile."""
    driver = at.running()
    asked = [
        driver.tell(ev.PauseAsked(True, 1)),
        driver.tell(ev.PauseAsked(True, 2)),
        driver.tell(ev.PauseAsked(False, 3)),
        driver.tell(ev.PauseAsked(False, 4)),
    ]

    assert asked == [
        [
            rec.RecordPause(paused=True),
            do.AnswerCommand(1, "done", "dispatch is paused; one run goes on"),
        ],
        [do.AnswerCommand(2, "done", "dispatch is paused; one run goes on")],
        [rec.RecordPause(paused=False), do.AnswerCommand(3, "done", "dispatch goes on")],
        [do.AnswerCommand(4, "done", "dispatch goes on")],
    ]


def test_a_pause_outlasts_the_daemon() -> None:
    """A retry in a paused life is due, and runs when dispatch goes on in the next."""
    driver = at.waiting()
    driver.tell(ev.PauseAsked(True))
    driver.die()
    driver.pass_time()

    answer = told(driver.tell(ev.RetryAsked("a", 1)))
    paused = driver.pass_time()
    resumed = driver.settle(driver.tell(ev.PauseAsked(False)))

    assert answer.message == "A is due now, but dispatch is paused"
    assert (len(starts(paused)), len(starts(resumed))) == (0, 1)


def test_nothing_starts_while_starts_are_suspended() -> None:
    """A due wait stays due, its retry says why, and it runs once starts are allowed again."""
    driver = at.waiting()
    driver.tell(ev.StartsSuspended("another daemon takes over"))

    answer = told(driver.tell(ev.RetryAsked("a", 1)))
    suspended = driver.pass_time()
    again = driver.settle(driver.tell(ev.StartsSuspended(None)))

    assert answer.message == "A is due now, but another daemon takes over"
    assert (len(starts(suspended)), len(starts(again))) == (0, 1)


def test_a_refresh_polls_at_once_unless_the_daemon_is_stopping() -> None:
    """One under way is followed by another, however many ask."""
    driver = Lives()
    driver.tell(ev.TimePassed())
    during = [driver.tell(ev.RefreshRequested(n)) for n in (1, 2)]
    driver.tell(ev.CandidatesFetched(()))
    after = driver.tell(ev.TimePassed())
    driver.tell(ev.CandidatesFetched(()))
    driver.tell(ev.ShutdownRequested())

    refused = driver.tell(ev.RefreshRequested(3))

    assert during == [[do.AnswerCommand(n, "done", "a poll was asked for")] for n in (1, 2)]
    assert only(after, do.Poll) == [do.Poll()]
    assert driver.tell(ev.TimePassed()) == []
    assert refused == [
        do.AnswerCommand(3, "conflict", "the daemon is stopping and polls no more"),
    ]


def test_a_retry_while_the_daemon_is_stopping_waits_for_the_next() -> None:
    """It is on record, and the answer says why nothing happens now."""
    driver = at.waiting()
    driver.tell(ev.ShutdownRequested())

    answer = told(driver.tell(ev.RetryAsked("a", 1)))
    driver.die()

    assert answer.message == "A is due now, but the daemon is stopping"
    assert len(starts(driver.pass_time())) == 1


def test_a_stop_while_the_daemon_is_stopping_holds_over_the_restart() -> None:
    """A run that the shutdown ends is held all the same."""
    driver = by_shutdown()
    driver.tell(ev.StopAsked("a"))
    driver.end(at.the_run(driver), Stopped())
    driver.die()

    decisions = driver.pass_time() + driver.pass_time(3600)

    assert starts(decisions) == []
    assert driver.holds() is HoldReason.OPERATOR
