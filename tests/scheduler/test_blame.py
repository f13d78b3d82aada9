"""Which issue is blamed for a bug, whichever handler meets it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from sortie.model import (
    ErrorKind,
    Failed,
    Finish,
    Finished,
    RunEnd,
    RunId,
    RunReport,
    Stopped,
    TrackerErrorKind,
)
from sortie.scheduler import (
    Event,
    claim_table,
    clean_ups,
    commands,
    core,
    dispatch,
    exits,
    handoffs,
    reconcile,
    state,
)
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from tests.scheduler.driver import POLICY, issue, only
from tests.scheduler.lives import A, Lives
from tests.scheduler.poison import Bug, fails_on_poison, poison, polled

BROKEN = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")
HANDOFF = replace(POLICY, handoff_state="Review")


def running(driver: Lives) -> Lives:
    driver.put(poison())
    driver.start(issue("b"), poison())
    return driver


def run_of(driver: Lives, name: str) -> RunId:
    return next(c.run_id for c in driver.scheduler.snapshot(0).worked if c.issue.id == name)


def chosen(driver: Lives) -> Event:
    driver.tell(ev.TimePassed())
    (question,) = only(driver.tell(ev.CandidatesFetched((issue("b"), poison()))), do.Refresh)
    assert isinstance(question, do.Refresh)
    return ev.IssuesRefreshed(question.token, question.ids, (issue("b"), poison()))


def reread(driver: Lives) -> Event:
    running(driver)
    driver.now += 60
    (question,) = only(driver.tell(ev.TimePassed()), do.Refresh)
    assert isinstance(question, do.Refresh)
    return ev.IssuesRefreshed(question.token, question.ids, (issue("b"), poison()))


def exit_of(end: RunEnd) -> Callable[[Lives], Event]:
    def leave(driver: Lives) -> Event:
        running(driver)
        return ev.WorkerExited(run_of(driver, "a"), RunReport(end=end))

    return leave


def handed_off(driver: Lives) -> Event:
    running(driver)
    (question,) = only(driver.end(run_of(driver, "a")), do.HandOff)
    assert isinstance(question, do.HandOff)
    kind = TrackerErrorKind.UNAVAILABLE
    return ev.TransitionAnswered(A, question.token, kind, "500")


def handoff_due(driver: Lives) -> Event:
    driver.tell(handed_off(driver))
    driver.now += 10
    return ev.TimePassed()


def cleaned(driver: Lives) -> Event:
    running(driver)
    driver.tell(ev.WorkspaceMade(run_of(driver, "a"), driver.known()))
    driver.put(poison("Done"))
    driver.pass_time(60)
    driver.end(run_of(driver, "a"), Stopped())
    return ev.WorkspaceCleaned(A, (), "directory not empty")


def asked(event: Event) -> Callable[[Lives], Event]:
    def ask(driver: Lives) -> Event:
        running(driver)
        return event

    return ask


def falling_due(driver: Lives) -> Event:
    """The end of the poisoned one's wait."""
    running(driver)
    driver.end(run_of(driver, "a"), BROKEN)
    driver.tell(ev.PauseAsked(True))
    driver.now += 60
    return ev.TimePassed()


def due(driver: Lives) -> Event:
    """An event about another issue while the poisoned one waits for a slot."""
    driver.tell(falling_due(driver))
    return ev.WorkerExited(run_of(driver, "b"), RunReport(end=BROKEN))


HANDLERS: list[tuple[object, str, Callable[[Lives], Event]]] = [
    (dispatch, "order_key", polled),
    (claim_table, "order_key", falling_due),
    (dispatch, "first_closed", due),
    (dispatch, "first_closed", polled),
    (dispatch, "closed", chosen),
    (reconcile, "_update_run", reread),
    (exits, "_follow", exit_of(Finished(finish=Finish.BLOCKED))),
    (exits, "wait_for_run", exit_of(BROKEN)),
    (handoffs, "hand_off", handed_off),
    (core, "try_handoff", handoff_due),
    (clean_ups, "replace", cleaned),
    (state.SchedulerState, "stop", asked(ev.StopAsked("a"))),
    (state.SchedulerState, "stop", asked(ev.ShutdownRequested())),
    (commands, "_not_retried", asked(ev.RetryAsked("a"))),
]


@pytest.mark.parametrize(
    ("where", "rule", "before"), HANDLERS, ids=[f"{h[1]}-{n}" for n, h in enumerate(HANDLERS)]
)
def test_the_issue_that_was_looked_at_is_blamed(
    where: object, rule: str, before: Callable[[Lives], Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever handler meets the bug, the issue in hand is the one that it is about."""
    driver = Lives(HANDOFF)
    event = before(driver)
    monkeypatch.setattr(where, rule, fails_on_poison(getattr(where, rule)))

    with pytest.raises(Bug):
        driver.tell(event)

    assert driver.scheduler.in_hand is not None
    assert driver.scheduler.in_hand.id == A


def test_no_issue_is_blamed_for_what_is_about_none() -> None:
    """A blame left over from an earlier event or issue would park an innocent one."""
    driver = Lives(HANDOFF)
    running(driver)

    driver.tell(ev.StoreChanged("the disk is full"))

    assert driver.scheduler.in_hand is None
