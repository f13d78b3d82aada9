"""Issues that leave their active states under a turn, perhaps by the agent's own hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.model import (
    ErrorKind,
    Failed,
    Finish,
    Finished,
    RunEnd,
    RunStatus,
    Stopped,
    StopReason,
)
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Running, Stopping
from tests.scheduler import standings as at
from tests.scheduler.driver import POLICY, Driver, issue, only
from tests.scheduler.lives import A, Lives

GONE: str | None = None


def moved(state: str | None) -> Lives:
    """Return a daemon that has seen the issue move, or vanish, during its second turn."""
    driver = at.running()
    driver.tracker.clear()
    if state is not None:
        driver.put(issue(state=state))
    driver.pass_time(30)
    driver.pass_time(5)  # a second read, where the first one missed it
    return driver


def exit_of(decisions: list[do.Decision]) -> rec.RecordExit:
    """Return the record of the only run's end."""
    (record,) = only(decisions, rec.RecordExit)
    assert isinstance(record, rec.RecordExit)
    return record


@pytest.mark.parametrize("state", ["Done", "Review", GONE])
def test_a_turn_that_ends_in_time_ends_its_run_well(state: str | None) -> None:
    """The agent that moved its issue, or removed it, finishes its turn, and the run succeeds."""
    driver = moved(state)
    driver.now += POLICY.inactive_grace - 6

    early = driver.pass_time()
    finish = Finish.LEFT_ACTIVE if state else Finish.GONE
    ended = driver.end(at.the_run(driver), Finished(finish=finish))

    assert only(early, do.StopWorker) == []
    assert exit_of(ended).status is RunStatus.SUCCEEDED
    assert only(ended, rec.RecordRetry) == only(ended, do.StopWorker) == []


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("Done", StopReason.TERMINAL),
        ("Review", StopReason.INACTIVE),
        (GONE, StopReason.MISSING),
    ],
)
def test_a_turn_that_goes_on_is_stopped(state: str | None, reason: StopReason) -> None:
    """The bound is kept to the second, whatever is read in between, and the run is cancelled."""
    driver = moved(state)
    left_at = 30 if state else 35

    woken_at = driver.scheduler.wakeup_at()
    driver.tell(ev.RefreshRequested())
    between = driver.settle(driver.tell(ev.RefreshRequested()))
    driver.now = left_at + POLICY.inactive_grace
    late = driver.pass_time()
    claim = driver.scheduler.snapshot(driver.now).claims[A]
    ended = driver.end(at.the_run(driver), Stopped())

    assert woken_at <= left_at + POLICY.inactive_grace
    assert only(between, do.StopWorker) == []
    assert [d.reason for d in late if isinstance(d, do.StopWorker)] == [reason]
    assert isinstance(claim, Stopping)
    record = exit_of(ended)
    assert (record.status, record.error_kind) == (RunStatus.CANCELLED, ErrorKind.TURN_CANCELLED)


def test_a_worker_that_reads_its_issue_active_keeps_its_run() -> None:
    """What the worker read after its turn is the newest news."""
    driver = moved("Review")
    driver.put(issue())

    driver.tell(ev.IssueMoved(at.the_run(driver), issue()))
    driver.tell(ev.TurnStarted(at.the_run(driver), 3))
    later = driver.pass_time(POLICY.inactive_grace + 1)

    assert only(later, do.StopWorker) == []


def test_no_further_turn_begins() -> None:
    """A worker that read its issue before it was moved is stopped before it takes another turn."""
    driver = moved("Done")

    decisions = driver.tell(ev.TurnStarted(at.the_run(driver), 3))
    ended = driver.end(at.the_run(driver), Stopped(completed=True))

    assert [d.reason for d in decisions if isinstance(d, do.StopWorker)] == [StopReason.TERMINAL]
    assert only(decisions, rec.RecordTurn) == []
    assert exit_of(ended).status is RunStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (Stopped(completed=True), RunStatus.SUCCEEDED),
        (Stopped(), RunStatus.CANCELLED),
        (Failed(kind=ErrorKind.TURN_FAILED, message="it broke"), RunStatus.FAILED),
    ],
)
def test_a_stop_between_turns_takes_nothing_from_a_turn_that_completed(
    end: RunEnd, status: RunStatus
) -> None:
    """The run is recorded as what its last turn was, where the stop came after it."""
    driver = moved("Done")
    driver.pass_time(POLICY.inactive_grace)

    ended = driver.end(at.the_run(driver), end)

    assert exit_of(ended).status is status
    assert only(ended, rec.RecordRetry) == []


def test_states_of_other_settings_give_the_same_time() -> None:
    """A reload that makes the issue's state inactive lets the turn end too, and another undoes
    that."""
    driver = at.running()
    fewer = replace(at.HANDOFF, active_states=frozenset({"doing"}))

    driver.tell(ev.PolicyChanged(fewer))
    driver.pass_time()
    claim = driver.scheduler.snapshot(driver.now).claims[A]
    driver.tell(ev.PolicyChanged(at.HANDOFF))
    driver.pass_time()
    later = driver.pass_time(POLICY.inactive_grace + 1)

    assert isinstance(claim, Running)
    assert claim.departure is not None
    assert only(later, do.StopWorker) == []


def test_a_run_without_a_turn_is_stopped_at_once() -> None:
    """No agent can have moved the issue yet."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.put(issue(state="Done"))

    decisions = driver.pass_time(30)

    assert [d.run_id for d in decisions if isinstance(d, do.StopWorker)] == [run.run_id]
