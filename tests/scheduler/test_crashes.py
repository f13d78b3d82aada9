"""A bug that one issue trips: it is counted and parked, and the others go on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from sortie.model import (
    Comment,
    ErrorKind,
    Failed,
    HoldReason,
    Issue,
)
from sortie.orchestrator.recovery import crashed_over
from sortie.scheduler import Event, dispatch, exits, reconcile, state
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.clean_ups import finish
from sortie.scheduler.timing import order_key
from tests.scheduler.driver import issue, only, starts
from tests.scheduler.lives import A, Lives
from tests.scheduler.poison import Bug, fails_on_poison, poison, polled

BROKEN = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")


def crash(driver: Lives, event: Event) -> Issue | None:
    """Have a daemon crash over an event, as the shell records it, and begin its next life."""
    with pytest.raises(Bug):
        driver.tell(event)
    blamed = driver.scheduler.in_hand
    if blamed is not None:
        for record in crashed_over(blamed):
            driver.disk.write(record, driver.now)
    driver.die()
    return blamed


def test_the_second_crash_parks_the_issue_and_the_others_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After one crash it is tried again; after two it is held, its candidate is not touched, and
    what else there is runs."""
    monkeypatch.setattr(dispatch, "order_key", fails_on_poison(order_key))
    driver = Lives()
    driver.put(poison(), issue("b"))

    blamed = [crash(driver, polled(driver)), crash(driver, polled(driver))]
    held = driver.holds()
    decisions = driver.pass_time() + driver.pass_time(60)

    assert blamed == [poison(), poison()]
    assert held is driver.holds() is HoldReason.INTERNAL_ERROR
    assert [s.issue.id for s in starts(decisions)] == ["b"]
    assert A not in driver.scheduler._state.candidates


@pytest.mark.parametrize("operator", [False, True], ids=["held for it", "stopped besides"])
@pytest.mark.parametrize(
    "changes",
    [{"state": "Doing"}, {"state": "Done"}, {"title": "Mend it otherwise"}],
    ids=["moved", "finished", "edited"],
)
def test_a_held_issue_that_still_breaks_us_after_a_change_stays_held(
    changes: dict[str, str], operator: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that does not mend it costs one crash and no more, whoever holds it by then."""
    for module in (state, dispatch):
        monkeypatch.setattr(module, "order_key", fails_on_poison(order_key))
    for module in (dispatch, exits, reconcile):
        monkeypatch.setattr(module, "finish", fails_on_poison(finish))
    driver = Lives()
    driver.put(poison())
    for _ in range(2):
        crash(driver, polled(driver))
    driver.pass_time()
    if operator:
        driver.settle(driver.tell(ev.StopAsked("a")))
    reason = driver.holds()
    driver.put(replace(poison(), **changes))
    driver.now += 60
    (question,) = only(driver.tell(ev.TimePassed()), do.Refresh)
    assert isinstance(question, do.Refresh)
    event = ev.IssuesRefreshed(question.token, question.ids, (driver.tracker[A],))

    if operator and "state" not in changes:
        driver.tell(event)
    else:
        assert crash(driver, event) == driver.tracker[A]
    for _ in range(3):
        driver.pass_time()
        driver.die()

    assert driver.holds() is reason


def test_a_comment_of_ours_is_no_change_of_a_finished_issue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that was late, on an issue that the daemon crashes over when it puts it away."""
    for module in (dispatch, exits, reconcile):
        monkeypatch.setattr(module, "finish", fails_on_poison(finish))
    finished = replace(poison(), state="Done")
    driver = Lives()
    driver.put(finished)
    for _ in range(2):
        driver.disk.write(rec.RecordCrash(issue=finished), 0.0)
    driver.die()
    driver.pass_time()
    comment = Comment(author="sortie", body="The run failed.", created_at=datetime.now(UTC))
    driver.put(replace(finished, comments=(comment,)))

    driver.pass_time(60)

    assert driver.holds() is HoldReason.INTERNAL_ERROR


def test_a_mended_issue_runs_and_its_crashes_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A change that mends it ends the hold, and the count begins anew."""
    for module in (state, dispatch):
        monkeypatch.setattr(module, "order_key", fails_on_poison(order_key))
    driver = Lives()
    driver.put(poison())
    for _ in range(2):
        crash(driver, polled(driver))
    driver.pass_time()
    driver.put(issue())

    decisions = driver.pass_time(60)

    assert len(starts(decisions)) == 1
    assert driver.disk.crashes == {}


def test_two_crashes_are_a_hold_whatever_the_issue_was_at() -> None:
    """A wait of it is forgotten, a cut run is over, another hold stays what it is."""
    driver = Lives()
    driver.end(driver.begin(), BROKEN)
    for _ in range(2):
        driver.disk.write(rec.RecordCrash(issue=issue()), 0.0)

    driver.die()

    assert driver.holds() is HoldReason.INTERNAL_ERROR
    assert driver.disk.retries == {}
