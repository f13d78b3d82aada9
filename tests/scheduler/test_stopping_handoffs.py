"""An operator's stop of an issue that is being handed off."""

from __future__ import annotations

import pytest

from sortie import facts
from sortie.model import HoldReason, TrackerErrorKind
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff
from tests.scheduler import standings as at
from tests.scheduler.driver import issue, only, starts
from tests.scheduler.lives import A, Lives


def handing_stopped() -> Lives:
    driver = at.handing()
    driver.tell(ev.StopAsked("a"))
    return driver


@pytest.mark.parametrize("again", [1, 2])
def test_a_stop_during_a_handoff_that_succeeds_releases(again: int) -> None:
    """However often it was asked for, what was handed off is not held."""
    driver = at.handing()
    for _ in range(again):
        driver.tell(ev.StopAsked("a"))
    driver.put(issue(state="Review"))

    decisions = at.answer_handoff(driver, None)

    assert decisions == [
        rec.ForgetHold(issue_id=A),
        facts.HoldEnded(issue=issue(), reason="it was moved to Review"),
    ]
    assert (driver.claim(), driver.disk.holds, driver.disk.retries) == (None, {}, {})


@pytest.mark.parametrize("kind", TrackerErrorKind)
@pytest.mark.parametrize("state", ["Todo", "Doing"])
def test_a_stop_during_a_handoff_that_fails_holds(kind: TrackerErrorKind, state: str) -> None:
    """Whatever kept it from the handoff, also a person's move to another active state before."""
    driver = at.handing()
    driver.tell(ev.StopAsked("a"))
    driver.put(issue(state=state))

    decisions = driver.settle(at.answer_handoff(driver, kind)) + driver.pass_time(3600)

    assert driver.holds() is HoldReason.OPERATOR
    assert starts(decisions) == []


@pytest.mark.parametrize("state", ["Todo", "Review", "Done"])
def test_a_death_during_a_stopped_handoff_is_safe(state: str) -> None:
    """The next life finds the hold; where the handoff came through after all, it ends."""
    driver = handing_stopped()
    driver.put(issue(state=state))
    driver.die()

    decisions = driver.pass_time() + driver.pass_time(60)

    assert starts(decisions) == only(decisions, do.HandOff) == []
    assert (driver.holds() is not None) == (state == "Todo")
    assert len(only(decisions, do.CleanWorkspace)) == (state == "Done")


def test_a_death_during_a_handoff_that_nobody_stopped_tries_it_again() -> None:
    """It is asked for again, and the agent does not run for it."""
    driver = at.handing()
    driver.die()

    decisions = driver.pass_time()

    assert len(only(decisions, do.HandOff)) == 1
    assert isinstance(driver.claim(), HandingOff)
    assert starts(decisions) == []
