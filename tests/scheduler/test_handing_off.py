"""How an issue comes to the handoff state, or does not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.model import (
    HoldReason,
    Streak,
    TrackerErrorKind,
)
from sortie.scheduler import Memory
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Held
from tests.scheduler.driver import POLICY, Driver, issue, only, starts

HANDOFF = replace(POLICY, handoff_state="Review")


def claim_of(driver: Driver, name: str = "a") -> object:
    return driver.scheduler.snapshot(driver.now).claims.get(issue(name).id)


def test_success_ends_with_the_handoff_and_the_claim_is_released() -> None:
    """A good run of a still active issue is handed off, once, and nothing waits after it."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())

    (question,) = only(driver.end(run.run_id), do.HandOff)
    assert isinstance(question, do.HandOff)
    driver.put(issue(state="Review"))
    answer = ev.TransitionAnswered(issue().id, question.token, state="Review")
    answered = driver.settle(driver.tell(answer))

    assert (question.issue, question.state) == (issue(), "Review")
    assert answered == [
        rec.RecordHandoff(issue=issue(), state="Review"),
        rec.ForgetRetry(issue_id=issue().id),
    ]
    assert claim_of(driver) is None


def test_a_refused_handoff_is_tried_five_times_then_held() -> None:
    """The handoff is retried by itself with backoff; the agent does not run again for it."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())
    decisions = driver.end(run.run_id)
    delays = []

    for _ in range(5):
        (question,) = only(decisions, do.HandOff)
        assert isinstance(question, do.HandOff)
        refused = TrackerErrorKind.INVALID
        answer = ev.TransitionAnswered(issue().id, question.token, refused, "422")
        decisions = driver.tell(answer)
        assert starts(decisions) == []
        for retry in only(decisions, rec.RecordRetry):
            assert isinstance(retry, rec.RecordRetry)
            delays.append(retry.delay)
            decisions = driver.pass_time(retry.delay)

    held = claim_of(driver)
    assert delays == [10, 20, 40, 80]
    assert isinstance(held, Held)
    assert held.reason is HoldReason.HANDOFF_FAILED


@pytest.mark.parametrize("kind", [TrackerErrorKind.NOT_FOUND, TrackerErrorKind.PERMISSION])
def test_a_hopeless_handoff_is_held_at_once(kind: TrackerErrorKind) -> None:
    """Where trying again cannot help, the issue is held after the first try."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())
    (question,) = only(driver.end(run.run_id), do.HandOff)
    assert isinstance(question, do.HandOff)

    driver.tell(ev.TransitionAnswered(issue().id, question.token, kind, "no"))

    assert isinstance(claim_of(driver), Held)


def test_a_handoff_survives_a_restart_without_another_run() -> None:
    """A recorded handoff is tried at the next start; the agent is not run for it."""
    due = HandingOff(issue=issue(), streak=Streak(), tries=1, token=None, due_at=0.0)
    driver = Driver(HANDOFF, Memory(claims=(due,)))
    driver.put(issue())

    decisions = driver.pass_time()

    assert len(only(decisions, do.HandOff)) == 1
    assert starts(decisions) == []


@pytest.mark.parametrize("kind", [TrackerErrorKind.CLOSED, TrackerErrorKind.UNAVAILABLE])
def test_a_tracker_in_an_outage_is_tried_less_and_less_until_it_takes_a_change(
    kind: TrackerErrorKind,
) -> None:
    """The pauses grow and no try is counted; one change that it takes makes all others due."""
    driver = Driver(HANDOFF)
    runs = driver.start(issue("a"), issue("b"))
    questions = [only(driver.end(run.run_id), do.HandOff)[0] for run in runs]
    pauses = []
    for _ in range(3):
        (question, *_) = questions
        assert isinstance(question, do.HandOff)
        closed = driver.tell(
            ev.TransitionAnswered(question.issue.id, question.token, kind, "it answered 500")
        )
        pauses += [(w.tries, w.delay) for w in closed if isinstance(w, rec.RecordRetry)]
        if len(pauses) < 3:
            questions[0] = only(driver.pass_time(pauses[-1][1]), do.HandOff)[0]
    other = questions[1]
    assert isinstance(other, do.HandOff)
    before = driver.scheduler.wakeup_at()

    driver.tell(ev.TransitionAnswered(other.issue.id, other.token))

    assert pauses == [(0, 10.0), (0, 20.0), (0, 40.0)]
    assert before > driver.now
    assert driver.scheduler.wakeup_at() == driver.now
