"""Every kind of hold, come by in the way in which it comes about."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.model import (
    ErrorKind,
    Failed,
    Finish,
    Finished,
    HoldReason,
    Issue,
    RunEnd,
    RunId,
    RunReport,
    Spending,
    Stopped,
    TrackerErrorKind,
)
from sortie.scheduler import Decision, Event
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.budgets import Allowance
from tests.scheduler.driver import POLICY, issue
from tests.scheduler.lives import A, Lives

PARKING = replace(
    POLICY,
    handoff_state="Review",
    in_progress_state="Doing",
    max_sessions=1,
    per_issue=Allowance(credits=100.0),
)

_ENDS: dict[HoldReason, RunEnd] = {
    HoldReason.AGENT_NOT_FOUND: Failed(kind=ErrorKind.AGENT_NOT_FOUND, message="no kiro-cli"),
    HoldReason.INVALID_WORKSPACE_CWD: Failed(kind=ErrorKind.INVALID_WORKSPACE_CWD, message="gone"),
    HoldReason.AGENT_BLOCKED: Finished(finish=Finish.BLOCKED),
    HoldReason.SESSION_BUDGET_EXHAUSTED: Failed(kind=ErrorKind.PORT_EXIT, message="it broke"),
    HoldReason.USAGE_BUDGET_EXHAUSTED: Stopped(),
    HoldReason.HANDOFF_FAILED: Finished(finish=Finish.TURNS_USED),
    HoldReason.OPERATOR: Stopped(),
}

AFTER_A_RUN = tuple(_ENDS)
"""The reasons for which an issue is held when its run is over."""


def end_of(reason: HoldReason) -> RunEnd:
    """Return the end of a run after which its issue is held for this reason."""
    return _ENDS[reason]


def finish(driver: Lives, run_id: RunId, reason: HoldReason) -> list[Decision]:
    """End a run so that its issue is held, and leave all that is asked unanswered."""
    if reason is HoldReason.OPERATOR:
        driver.tell(ev.StopAsked("a"))
    if reason is HoldReason.USAGE_BUDGET_EXHAUSTED:
        driver.tell(ev.SpendingReported(run_id, Spending(credits=100.0)))
    decisions = driver.tell(ev.WorkerExited(run_id, ended(reason)))
    for question in [d for d in decisions if isinstance(d, do.HandOff)]:
        decisions += driver.tell(refused(question))
    return decisions


def ended(reason: HoldReason) -> RunReport:
    """Return the report of a run after which its issue is held for this reason."""
    return RunReport(end=end_of(reason), turns=1)


def refused(question: do.HandOff) -> Event:
    """Return the answer of a tracker that lets nobody move the issue."""
    kind = TrackerErrorKind.PERMISSION
    return ev.TransitionAnswered(question.issue.id, question.token, kind, "forbidden")


def parked(reason: HoldReason) -> Lives:
    """Return a daemon that holds the issue `a` for a reason, and has read it since."""
    driver = Lives(PARKING)
    if reason in AFTER_A_RUN:
        run_id = driver.begin()
        driver.put(issue(state="Doing"))
        driver.tell(ev.IssueMoved(run_id, issue(state="Doing"), True))
        driver.settle(finish(driver, run_id, reason))
    else:
        driver.put(issue(state="Doing"))
        _record(driver, reason)
        driver.ran_before(sessions=1)
        driver.die()
        driver.pass_time()
    assert driver.holds() is reason
    return driver


def _record(driver: Lives, reason: HoldReason) -> None:
    if reason is HoldReason.INTERNAL_ERROR:
        for _ in range(2):
            driver.disk.write(rec.RecordCrash(issue=issue(state="Doing")), driver.now)
    else:
        hold = rec.RecordHold(issue=issue(state="Doing"), reason=reason, detail="bad settings")
        driver.disk.write(hold, driver.now)


def edit(driver: Lives, **changes: object) -> Issue:
    """Change the issue `a` in the tracker, and return it as it is then."""
    changed = replace(driver.tracker[A], **changes)
    driver.put(changed)
    return changed
