"""Issues that are finished, moved away or gone, and their workspaces."""

from __future__ import annotations

import pytest

from sortie.model import (
    ErrorKind,
    KnownWorkspace,
    RunStatus,
    Stopped,
    StopReason,
)
from sortie.scheduler import Memory
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Stopping
from tests.scheduler.driver import Driver, issue, only


def claim_of(driver: Driver, name: str = "a") -> object:
    return driver.scheduler.snapshot(driver.now).claims.get(issue(name).id)


@pytest.mark.parametrize(
    ("state", "reason", "cleans"),
    [
        ("Done", StopReason.TERMINAL, True),
        ("Review", StopReason.INACTIVE, False),
    ],
)
def test_an_issue_that_left_its_active_states_is_stopped(
    state: str, reason: StopReason, cleans: bool
) -> None:
    """A terminal issue's run is stopped and its workspace removed; else it is kept."""
    driver = Driver()
    (run,) = driver.start(issue())
    known = KnownWorkspace(issue_id=issue().id, identifier="A", host="local", path="/w/A")
    driver.tell(ev.WorkspaceMade(run.run_id, known))
    driver.put(issue(state=state))

    decisions = driver.pass_time(30)
    stopping = claim_of(driver)
    ended = driver.end(run.run_id, Stopped())

    assert only(decisions, do.StopWorker) == [do.StopWorker(run.run_id, issue(state=state), reason)]
    assert isinstance(stopping, Stopping)
    assert [d.workspaces for d in ended if isinstance(d, do.CleanWorkspace)] == (
        [(known,)] if cleans else []
    )
    (exit_,) = only(ended, rec.RecordExit)
    assert isinstance(exit_, rec.RecordExit)
    assert (exit_.status, exit_.error_kind) == (RunStatus.CANCELLED, ErrorKind.TURN_CANCELLED)


def test_a_missing_issue_counts_only_after_two_reads() -> None:
    """One read that misses an issue proves nothing; the second, 5 s later, does."""
    driver = Driver()
    (run,) = driver.start(issue())
    driver.tracker.clear()

    first = driver.pass_time(30)
    second = driver.pass_time(5)

    assert only(first, do.StopWorker) == []
    assert only(second, do.StopWorker) == [do.StopWorker(run.run_id, issue(), StopReason.MISSING)]


def test_a_clean_up_that_cannot_be_done_keeps_nobody_from_being_idle() -> None:
    """It is tried again and listed, and the daemon may leave."""
    known = KnownWorkspace(issue_id=issue().id, identifier="A", host="local", path="/w/A")
    driver = Driver(memory=Memory(workspaces=(known,)))
    driver.put(issue(state="Done"))
    driver.pass_time()
    driver.tell(ev.WorkspaceCleaned(issue().id, (), "a shell lives in it"))

    driver.settle(driver.tell(ev.RefreshRequested()))
    driver.settle(driver.tell(ev.RefreshRequested()))

    assert driver.scheduler.idle_polls == 2


def test_known_workspaces_are_looked_at_again_after_a_failed_look() -> None:
    """A tracker that is down at the start costs no hour."""
    known = KnownWorkspace(issue_id=issue().id, identifier="A", host="local", path="/w/A")
    driver = Driver(memory=Memory(workspaces=(known,)))
    driver.put(issue(state="Done"))
    (question,) = only(driver.tell(ev.TimePassed()), do.Refresh)
    assert isinstance(question, do.Refresh)
    driver.tell(ev.IssuesRefreshed(question.token, question.ids, (), question.ids, "down"))

    again = driver.pass_time(30)

    assert len(only(again, do.CleanWorkspace)) == 1
