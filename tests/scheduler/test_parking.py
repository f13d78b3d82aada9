"""Which ends of a run park its issue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sortie.model import (
    ErrorKind,
    Failed,
    Finish,
    Finished,
    HoldReason,
    Stopped,
    Streak,
)
from sortie.scheduler import Memory, Policy
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Held
from tests.scheduler.driver import POLICY, Driver, issue, only, starts

HANDOFF = replace(POLICY, handoff_state="Review")
PORT_EXIT = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")


def claim_of(driver: Driver, name: str = "a") -> object:
    return driver.scheduler.snapshot(driver.now).claims.get(issue(name).id)


@pytest.mark.parametrize(
    ("policy", "end", "reason"),
    [
        (HANDOFF, Finished(finish=Finish.BLOCKED), HoldReason.AGENT_BLOCKED),
        (POLICY, Finished(finish=Finish.REVIEW), HoldReason.AGENT_BLOCKED),
        (
            HANDOFF,
            Failed(kind=ErrorKind.AGENT_NOT_FOUND, message="no kiro-cli"),
            HoldReason.AGENT_NOT_FOUND,
        ),
        (
            HANDOFF,
            Failed(kind=ErrorKind.INVALID_WORKSPACE_CWD, message="gone"),
            HoldReason.INVALID_WORKSPACE_CWD,
        ),
    ],
)
def test_ends_that_only_a_person_can_mend_are_held(
    policy: Policy, end: Finished | Failed, reason: HoldReason
) -> None:
    """Such an end is held at once and not retried."""
    driver = Driver(policy)
    (run,) = driver.start(issue())

    decisions = driver.end(run.run_id, end)
    later = driver.pass_time(4000)

    held = claim_of(driver)
    assert isinstance(held, Held)
    assert held.reason is reason
    assert only(decisions, rec.RecordRetry) == []
    assert starts(later) == []


def test_the_session_budget_holds_the_issue() -> None:
    """After max_sessions runs in which a turn started, the issue is held; a raised limit ends
    the hold and the count begins anew."""
    driver = Driver(replace(POLICY, max_sessions=2))
    (run,) = driver.start(issue())
    driver.tell(ev.TurnStarted(run.run_id, 1))
    driver.tell(ev.TurnStarted(run.run_id, 2))
    driver.end(run.run_id)
    (run,) = starts(driver.pass_time(1))
    driver.tell(ev.TurnStarted(run.run_id, 1))
    driver.end(run.run_id)
    held = claim_of(driver)

    resumed = driver.tell(ev.PolicyChanged(replace(POLICY, max_sessions=3)))
    resumed += driver.pass_time()

    assert isinstance(held, Held)
    assert held.reason is HoldReason.SESSION_BUDGET_EXHAUSTED
    assert rec.ResetBudget(issue_id=issue().id) in resumed
    assert len(starts(resumed)) == 1


def test_a_run_without_a_turn_costs_no_session() -> None:
    """Runs that fail before their first turn do not count against the budget."""
    driver = Driver(replace(POLICY, max_sessions=1))
    (run,) = driver.start(issue())

    driver.end(run.run_id, Failed(kind=ErrorKind.HOOK_FAILED, message="no"))
    again = driver.pass_time(10)

    assert len(starts(again)) == 1


def test_a_lowered_budget_holds_a_candidate_before_it_runs() -> None:
    """An issue that had its sessions already is held when it would be started."""
    driver = Driver(memory=Memory(sessions={issue().id: 2}))
    driver.tell(ev.PolicyChanged(replace(POLICY, max_sessions=2)))

    started = driver.start(issue())

    held = claim_of(driver)
    assert started == []
    assert isinstance(held, Held)
    assert held.detail == "it had 2 sessions, as many as agent.max_sessions allows"


def test_an_operators_stop_holds_until_retry_or_a_change_of_state() -> None:
    """An edit of the content does not end an operator's hold; `retry` does, with attempt 0."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.tell(ev.StopAsked(issue().id))
    driver.end(run.run_id, Stopped())
    driver.put(issue(description="edited"))

    edited = driver.pass_time(30)
    retried = driver.settle(driver.tell(ev.RetryAsked(issue().id)))

    assert only(edited, rec.ForgetHold) == []
    assert [s.streak for s in starts(retried)] == [Streak()]


def test_an_edit_of_the_content_ends_other_holds_but_a_comment_does_not() -> None:
    """What people write in comments, and Sortie itself, ends no hold; an edit does."""
    from sortie.model import Comment

    driver = Driver()
    (run,) = driver.start(issue())
    driver.end(run.run_id, Finished(finish=Finish.BLOCKED))
    driver.put(issue(comments=(Comment(author="x", body="?"),)))
    commented = driver.pass_time(30)
    driver.put(issue(description="now with details"))

    edited = driver.pass_time(30)

    assert only(commented, rec.ForgetHold) == []
    assert only(edited, rec.ForgetHold) == [rec.ForgetHold(issue_id=issue().id)]
    assert len(starts(edited)) == 1


def test_an_operator_may_stop_what_is_being_stopped() -> None:
    """The operator's word counts for what follows a stop that is under way."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.put(issue(state="Review"))
    driver.pass_time(30)

    driver.tell(ev.StopAsked(issue().id))
    driver.end(run.run_id, Stopped())

    held = claim_of(driver)
    assert isinstance(held, Held)
    assert held.reason is HoldReason.OPERATOR


def test_what_the_agent_wrote_last_does_not_end_the_hold_after_its_run() -> None:
    """The first read after a run is the baseline: only what changes after it ends the hold."""
    driver = Driver(replace(POLICY, max_sessions=1))
    (run,) = driver.start(issue())
    driver.tell(ev.TurnStarted(run.run_id, 1))
    driver.put(issue(description="[x] the agent ticked a box"))

    driver.end(run.run_id, PORT_EXIT)
    later = driver.pass_time(30)
    driver.put(issue(description="a person answers"))
    edited = driver.pass_time(30)

    assert only(later, rec.ForgetHold) == []
    assert only(edited, rec.ForgetHold) == [rec.ForgetHold(issue_id=issue().id)]
