"""Answers that come too late: what was asked before a claim last learned something."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from sortie.model import (
    ErrorKind,
    Failed,
    Finish,
    Finished,
    IssueId,
    KnownWorkspace,
    RunId,
    TrackerErrorKind,
)
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.claims import Cleaning, HandingOff, Held, Waiting
from tests.scheduler.driver import POLICY, Driver, issue, only

A = IssueId("a")
HANDOFF = replace(POLICY, handoff_state="Review")
BROKE = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")
BLOCKED = Finished(finish=Finish.BLOCKED)
WELL = Finished(finish=Finish.TURNS_USED)
HERE = KnownWorkspace(issue_id=A, identifier="A", host="local", path="/a")


def started(driver: Driver) -> RunId:
    """Start the issue's run, up to its first turn."""
    (start,) = driver.start(issue())
    driver.tell(ev.WorkspaceMade(start.run_id, HERE))
    driver.tell(ev.TurnStarted(start.run_id, 1))
    return start.run_id


def asked(driver: Driver) -> do.Refresh:
    """Have the claims re-read with the next tick, and leave the question unanswered."""
    driver.now += 60.0
    (question,) = only(driver.tell(ev.TimePassed()), do.Refresh)
    assert isinstance(question, do.Refresh)
    return question


def waiting(driver: Driver, run_id: RunId) -> None:
    """Have the issue wait."""
    driver.end(run_id, BROKE)


def handing_off(driver: Driver, run_id: RunId) -> None:
    """Have the issue wait for its second handoff."""
    driver.end(run_id, WELL)
    claim = driver.scheduler.snapshot(driver.now).claims[A]
    assert isinstance(claim, HandingOff)
    assert claim.token is not None
    driver.tell(ev.TransitionAnswered(A, claim.token, TrackerErrorKind.UNAVAILABLE, "down"))


def held(driver: Driver, run_id: RunId) -> None:
    """Have the issue held."""
    driver.end(run_id, BLOCKED)


def cleaning(driver: Driver, run_id: RunId) -> None:
    """Have the finished issue's workspace stay for now."""
    driver.put(issue(state="Done"))
    driver.tell(ev.IssueMoved(run_id, issue(state="Done")))
    driver.end(run_id, Finished(finish=Finish.LEFT_ACTIVE))
    driver.tell(ev.WorkspaceCleaned(A, (), "directory not empty"))


WAYS = [(waiting, Waiting), (handing_off, HandingOff), (held, Held), (cleaning, Cleaning)]
OLD = {
    "another state": ev.IssuesRefreshed(0, frozenset({A}), (issue(state="Backlog"),)),
    "closed": ev.IssuesRefreshed(0, frozenset({A}), (issue(state="Dropped"),)),
    "still active": ev.IssuesRefreshed(0, frozenset({A}), (issue(state="Doing"),)),
    "missing": ev.IssuesRefreshed(0, frozenset({A}), ()),
    "unreadable": ev.IssuesRefreshed(0, frozenset({A}), (), frozenset({A}), "down"),
}


@pytest.mark.parametrize("old", OLD.values(), ids=OLD)
@pytest.mark.parametrize(("way", "kind"), WAYS, ids=[kind.__name__ for _, kind in WAYS])
def test_what_was_asked_before_the_claim_changes_nothing(
    way: Callable[[Driver, RunId], None], kind: type, old: ev.IssuesRefreshed
) -> None:
    """The run knew better at its end: an answer to a question from before says how it was then."""
    driver = Driver(HANDOFF)
    run_id = started(driver)
    question = asked(driver)
    way(driver, run_id)
    before = driver.scheduler.snapshot(driver.now).claims[A]

    driver.tell(replace(old, token=question.token))

    assert isinstance(before, kind)
    assert driver.scheduler.snapshot(driver.now).claims[A] == before


@pytest.mark.parametrize("old", OLD.values(), ids=OLD)
def test_an_answer_that_a_later_question_overtook_changes_nothing(old: ev.IssuesRefreshed) -> None:
    """Of two questions under way about a hold the later one counts, whichever is answered first."""
    driver = Driver(HANDOFF)
    held(driver, started(driver))
    first = baseline(driver)
    newer = issue(title="Mend it soon")
    driver.tell(ev.IssuesRefreshed(first.token + 1, frozenset({A}), (newer,)))
    before = driver.scheduler.snapshot(driver.now).claims[A]

    driver.tell(replace(old, token=first.token))

    assert isinstance(before, Held)
    assert before.issue == newer
    assert driver.scheduler.snapshot(driver.now).claims[A] == before


def baseline(driver: Driver) -> do.Refresh:
    """Have the issue held anew, and return the question for the hold's baseline."""
    driver.tell(ev.RetryAsked("a"))
    (question,) = only(driver.tell(ev.StopAsked("a")), do.Refresh)
    assert isinstance(question, do.Refresh)
    return question


@pytest.mark.parametrize("old", OLD.values(), ids=OLD)
@pytest.mark.parametrize(
    ("way", "kind"), [(handing_off, HandingOff), (cleaning, Cleaning)], ids=["handoff", "clean-up"]
)
def test_what_is_being_done_is_not_undone_by_a_read_that_began_before(
    way: Callable[[Driver, RunId], None], kind: type, old: ev.IssuesRefreshed
) -> None:
    """A second try that is under way ends with its own answer, whatever was asked before it."""
    driver = Driver(replace(HANDOFF, poll_interval=5.0))
    way(driver, started(driver))
    driver.now += 5.0
    (first,) = only(driver.tell(ev.TimePassed()), do.Refresh)
    assert isinstance(first, do.Refresh)
    driver.tell(ev.IssuesRefreshed(first.token, first.ids, ()))  # it is missed once
    driver.now += 4.9
    (second,) = only(driver.tell(ev.RefreshRequested()), do.Refresh)
    assert isinstance(second, do.Refresh)
    driver.now += 0.1
    again = driver.tell(ev.TimePassed())
    before = driver.scheduler.snapshot(driver.now).claims[A]

    driver.tell(replace(old, token=second.token))

    after = driver.scheduler.snapshot(driver.now).claims[A]
    assert isinstance(before, kind)
    assert len(only(again, do.HandOff) + only(again, do.CleanWorkspace)) == 1
    assert replace(after, last_request=0, missing_since=None) == replace(
        before, last_request=0, missing_since=None
    )
