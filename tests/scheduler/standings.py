"""One issue at every point of its way through the scheduler."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from sortie.model import (
    Blocker,
    ErrorKind,
    Failed,
    RunId,
    RunReport,
    Stopped,
    StopReason,
    TrackerErrorKind,
)
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from tests.scheduler.driver import POLICY, issue
from tests.scheduler.lives import A, Lives

HANDOFF = replace(POLICY, handoff_state="Review")
BROKEN = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")


def the_run(driver: Lives) -> RunId:
    """Return the only run's id."""
    (run_id,) = (c.run_id for c in driver.scheduler.snapshot(driver.now).worked)
    return run_id


def fresh() -> Lives:
    """Return a daemon that knows nothing of the issue."""
    return Lives(HANDOFF)


def candidate() -> Lives:
    """The last poll found it, and it lacks nothing but a blocker's end."""
    driver = fresh()
    driver.put(issue(blocked_by=(Blocker(identifier="B-1", state="todo"),)))
    driver.pass_time()
    return driver


def rechecking() -> Lives:
    """It was chosen, and its re-read is under way."""
    driver = fresh()
    driver.put(issue())
    driver.tell(ev.TimePassed())
    driver.tell(ev.CandidatesFetched((issue(),)))
    return driver


def rechecking_again() -> Lives:
    """Its wait came due, it was chosen, and its re-read is under way."""
    driver = waiting()
    driver.now += 10
    driver.tell(ev.TimePassed())
    return driver


def starting() -> Lives:
    """Its worker prepares."""
    driver = fresh()
    driver.begin(turn=0)
    return driver


def running() -> Lives:
    """Its agent is in its second turn."""
    driver = fresh()
    run_id = driver.begin()
    driver.tell(ev.TurnStarted(run_id, 2))
    return driver


def departing() -> Lives:
    """It was moved, and its turn may end."""
    driver = running()
    driver.put(issue(state="Elsewhere"))
    driver.pass_time(30)
    return driver


def stopping(state: str = "Elsewhere") -> Callable[[], Lives]:
    """Its run is being stopped because it was moved."""

    def stop() -> Lives:
        driver = running()
        driver.put(issue(state=state))
        driver.pass_time(30)
        driver.pass_time(POLICY.inactive_grace)
        return driver

    return stop


def stopped_by(reason: StopReason) -> Lives:
    """Its run is being stopped by an operator, or because the daemon is."""
    driver = running()
    operator = reason is StopReason.OPERATOR
    driver.tell(ev.StopAsked("a") if operator else ev.ShutdownRequested())
    return driver


def waiting() -> Lives:
    """It failed once and waits 10 s."""
    driver = running()
    driver.end(the_run(driver), BROKEN)
    return driver


def due() -> Lives:
    """Its wait is over, and dispatch is paused."""
    driver = waiting()
    driver.tell(ev.PauseAsked(True))
    driver.pass_time(10)
    return driver


def handing() -> Lives:
    """The tracker is being asked to hand it off."""
    driver = running()
    driver.end(the_run(driver))
    return driver


def answer_handoff(driver: Lives, kind: TrackerErrorKind | None) -> list[do.Decision]:
    """Let the tracker answer the handoff that is under way."""
    token = driver.scheduler._state.last_request
    return driver.tell(ev.TransitionAnswered(A, token, kind, "422" if kind else ""))


def handing_again() -> Lives:
    """Its handoff failed once and waits 10 s."""
    driver = handing()
    answer_handoff(driver, TrackerErrorKind.INVALID)
    return driver


def held() -> Lives:
    """Its agent was not found."""
    driver = running()
    missing = Failed(kind=ErrorKind.AGENT_NOT_FOUND, message="no kiro-cli")
    driver.end(the_run(driver), missing)
    return driver


def held_for_handoff() -> Lives:
    """Nobody may hand it off."""
    driver = handing()
    driver.settle(answer_handoff(driver, TrackerErrorKind.PERMISSION))
    return driver


def held_by_operator() -> Lives:
    """An operator stopped it."""
    driver = waiting()
    driver.settle(driver.tell(ev.StopAsked("a")))
    return driver


def held_inactive() -> Lives:
    """An operator holds it in a state that has become inactive."""
    driver = held_by_operator()
    driver.tell(ev.PolicyChanged(replace(HANDOFF, active_states=frozenset({"doing"}))))
    driver.pass_time()
    return driver


def cleaning() -> Lives:
    """It is done, and its workspace is being removed."""
    driver = stopping("Done")()
    driver.tell(ev.WorkerExited(the_run(driver), RunReport(end=Stopped())))
    return driver


def cleaning_again() -> Lives:
    """It is done, and its workspace could not be removed."""
    driver = cleaning()
    driver.tell(ev.WorkspaceCleaned(A, (), "directory not empty"))
    return driver
