"""What people ask for: new settings, a poll, a pause, a stop, a retry, the end."""

from __future__ import annotations

from dataclasses import replace

from sortie.model import HoldReason, IssueId, StopReason, Streak, Trigger
from sortie.scheduler import records as rec
from sortie.scheduler.book import Book
from sortie.scheduler.claims import (
    HandingOff,
    Held,
    Rechecking,
    Running,
    Starting,
    Stopping,
    Waiting,
)
from sortie.scheduler.dispatching import put_back
from sortie.scheduler.policy import Policy
from sortie.scheduler.rules import CONFIGURATION_HOLDS

_STOPPED = "an operator stopped it"
_RETRIED = "an operator asked for a retry"


def poll_now(book: Book, now: float) -> None:
    """Poll at once; if a poll is under way its answer may be old already, so once more after it."""
    book.refresh_asked = book.polling
    book.poll_at = min(book.poll_at, now)
    book.reconcile_at = min(book.reconcile_at, now)


def change_policy(book: Book, policy: Policy, now: float) -> None:
    """Obey other settings from now on, also for what runs: states may mean something else."""
    old, book.policy = book.policy, policy
    book.unsettled = True
    for claim in list(book.claims.values()):
        if isinstance(claim, Held) and _ended_by_reload(claim, old, policy):
            book.end_hold(claim, "the settings changed")
    poll_now(book, now)


def _ended_by_reload(claim: Held, old: Policy, new: Policy) -> bool:
    if claim.reason is HoldReason.SESSION_BUDGET_EXHAUSTED:
        return new.max_sessions == 0 or new.max_sessions > old.max_sessions > 0
    if claim.reason is HoldReason.HANDOFF_FAILED:
        return old.handoff_state != new.handoff_state
    return claim.reason in CONFIGURATION_HOLDS


def pause(book: Book, *, paused: bool) -> None:
    """Start no run until dispatch is resumed, or resume it."""
    if paused == book.paused:
        return
    book.paused = paused
    book.unsettled = True
    book.out.append(rec.RecordPause(paused=paused))


def stop(book: Book, issue_id: IssueId, now: float) -> None:
    """End an issue's run or wait and park it; a candidate is parked before it runs."""
    if isinstance(book.claims.get(issue_id), Rechecking):
        put_back(book, issue_id)
    match book.claims.get(issue_id):
        case Starting() | Running() as claim:
            book.stop(claim, StopReason.OPERATOR)
        case Stopping() as claim:
            book.claims[issue_id] = replace(claim, reason=StopReason.OPERATOR)
        case Waiting() | HandingOff() as claim:
            book.out.append(rec.ForgetRetry(issue_id=issue_id))
            book.hold(claim.issue, HoldReason.OPERATOR, _STOPPED, now)
        case Held() as claim:
            book.hold(claim.issue, HoldReason.OPERATOR, _STOPPED, now)
        case None if (candidate := book.candidates.get(issue_id)) is not None:
            book.hold(candidate.issue, HoldReason.OPERATOR, _STOPPED, now)
        case _:
            pass


def retry(book: Book, issue_id: IssueId, now: float) -> None:
    """Make a waiting or held issue due now, with its attempts counted anew.

    A handoff that waits or failed is tried again by itself, without the agent.
    """
    match book.claims.get(issue_id):
        case Waiting() as claim:
            book.wait(claim.issue, Streak(), Trigger.OPERATOR, now, delay=0.0)
        case HandingOff(token=None) as claim:
            book.hand_off(claim.issue, claim.streak, now, tries=0, delay=0.0)
        case Held(reason=HoldReason.HANDOFF_FAILED) as claim if book.policy.handoff_state:
            book.end_hold(claim, _RETRIED)
            book.hand_off(claim.issue, Streak(), now, tries=0, delay=0.0)
        case Held() as claim:
            book.end_hold(claim, _RETRIED)
            book.wait(claim.issue, Streak(), Trigger.OPERATOR, now, delay=0.0)
        case _:
            pass


def shut_down(book: Book) -> None:
    """Stop every run and start none; what waits is on record for the next start."""
    if book.draining:
        return
    book.draining = True
    for claim in list(book.claims.values()):
        if isinstance(claim, Starting | Running):
            book.stop(claim, StopReason.SHUTDOWN)
