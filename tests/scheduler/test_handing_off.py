"""How an issue comes to the handoff state, or does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sortie import facts
from sortie.model import (
    ErrorKind,
    Failed,
    HoldReason,
    Streak,
    TrackerErrorKind,
    WaitKind,
)
from sortie.scheduler import Memory
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Held
from tests.scheduler.driver import POLICY, Driver, issue, only, starts

HANDOFF = replace(POLICY, handoff_state="Review")
PORT_EXIT = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")


def claim_of(driver: Driver, name: str = "a") -> object:
    return driver.scheduler.snapshot(driver.now).claims.get(issue(name).id)


def test_success_ends_with_the_handoff_and_the_claim_is_released() -> None:
    """A good run of a still active issue is handed off, once, and nothing waits after it."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())

    (question,) = only(driver.end(run.run_id), do.Transition)
    assert isinstance(question, do.Transition)
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
        (question,) = only(decisions, do.Transition)
        assert isinstance(question, do.Transition)
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
    (question,) = only(driver.end(run.run_id), do.Transition)
    assert isinstance(question, do.Transition)

    driver.tell(ev.TransitionAnswered(issue().id, question.token, kind, "no"))

    assert isinstance(claim_of(driver), Held)


def test_a_handoff_overtaken_by_a_person_is_given_up() -> None:
    """When someone moved the issue meanwhile, their word counts."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())
    (question,) = only(driver.end(run.run_id), do.Transition)
    assert isinstance(question, do.Transition)

    answer = ev.TransitionAnswered(
        issue().id, question.token, TrackerErrorKind.CONFLICT, "it was moved"
    )
    decisions = driver.tell(answer)

    assert decisions == [
        rec.ForgetRetry(issue_id=issue().id),
        facts.WaitEnded(issue=issue(), reason="it was moved"),
    ]
    assert claim_of(driver) is None


def test_the_answer_to_an_earlier_handoff_counts_for_nothing() -> None:
    """Only the answer to the handoff that is under way decides about it."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())
    (question,) = only(driver.end(run.run_id), do.Transition)
    assert isinstance(question, do.Transition)

    stale = driver.tell(ev.TransitionAnswered(issue().id, question.token - 1))

    assert stale == []
    assert isinstance(claim_of(driver), HandingOff)


def test_each_failed_handoff_is_on_record() -> None:
    """What the next start must know: how often it failed, and how long the pause is."""
    driver = Driver(HANDOFF)
    (run,) = driver.start(issue())
    waits = only(driver.end(run.run_id), rec.RecordRetry)
    for _ in range(4):
        claim = claim_of(driver)
        assert isinstance(claim, HandingOff)
        assert claim.token is not None
        answer = ev.TransitionAnswered(issue().id, claim.token, TrackerErrorKind.INVALID, "-")
        waits += only(driver.settle(driver.tell(answer)), rec.RecordRetry)
        driver.pass_time(300.0)

    recorded = [(w.kind, w.tries, w.delay) for w in waits if isinstance(w, rec.RecordRetry)]
    pauses = [0.0, 10.0, 20.0, 40.0, 80.0]
    assert recorded == [(WaitKind.HANDOFF, n, pause) for n, pause in enumerate(pauses)]


def test_a_handoff_survives_a_restart_without_another_run() -> None:
    """A recorded handoff is tried at the next start; the agent is not run for it."""
    due = HandingOff(issue=issue(), streak=Streak(), tries=1, token=None, due_at=0.0)
    driver = Driver(HANDOFF, Memory(claims=(due,)))
    driver.put(issue())

    decisions = driver.pass_time()

    assert len(only(decisions, do.Transition)) == 1
    assert starts(decisions) == []


def test_a_miss_is_forgotten_when_a_waiting_handoff_is_found_again() -> None:
    """A tracker that loses an issue for a moment is not asked for it again and again."""
    due = HandingOff(issue=issue(), streak=Streak(), tries=1, token=None, due_at=300.0)
    driver = Driver(HANDOFF, Memory(claims=(due,)))
    driver.pass_time()
    driver.put(issue())

    driver.pass_time(5)

    assert driver.scheduler.wakeup_at() > driver.now


@pytest.mark.parametrize("kind", [TrackerErrorKind.CLOSED, TrackerErrorKind.UNAVAILABLE])
def test_a_tracker_in_an_outage_is_tried_less_and_less_until_it_takes_a_change(
    kind: TrackerErrorKind,
) -> None:
    """The pauses grow and no try is counted; one change that it takes makes all others due."""
    driver = Driver(HANDOFF)
    runs = driver.start(issue("a"), issue("b"))
    questions = [only(driver.end(run.run_id), do.Transition)[0] for run in runs]
    pauses = []
    for _ in range(3):
        (question, *_) = questions
        assert isinstance(question, do.Transition)
        closed = driver.tell(
            ev.TransitionAnswered(question.issue.id, question.token, kind, "it answered 500")
        )
        pauses += [(w.tries, w.delay) for w in closed if isinstance(w, rec.RecordRetry)]
        if len(pauses) < 3:
            questions[0] = only(driver.pass_time(pauses[-1][1]), do.Transition)[0]
    other = questions[1]
    assert isinstance(other, do.Transition)
    before = driver.scheduler.wakeup_at()

    driver.tell(ev.TransitionAnswered(other.issue.id, other.token))

    assert pauses == [(0, 10.0), (0, 20.0), (0, 40.0)]
    assert before > driver.now
    assert driver.scheduler.wakeup_at() == driver.now
