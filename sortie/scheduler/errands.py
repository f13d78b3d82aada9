"""Errands at a forge or the tracker: one after another, each until it is done or refused."""

from __future__ import annotations

from msgspec.structs import replace

from sortie import facts
from sortie.model import HoldReason
from sortie.model.watches import IssueMove, MergeCancellation, word_for
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Held, Waiting
from sortie.scheduler.clean_ups import finish
from sortie.scheduler.decisions import RunErrand
from sortie.scheduler.holds import end_hold, hold
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.watch_records import forget_watch, look_backoff, record_watch
from sortie.scheduler.watch_table import Watched

ERRAND_TRIES = 5
"""Tries after which an errand that the service refuses is left."""


def begin_errand(state: SchedulerState, watched: Watched) -> None:
    """Do the first errand of a watch."""
    watched.token, watched.doing = state.next_request(), "errand"
    watch = watched.watch
    state.out.append(RunErrand(watched.token, watched.issue, watch.pull_request, watch.errands[0]))


def errand_done(state: SchedulerState, event: ev.ErrandDone, now: float) -> None:
    """Take the first errand off, or try it again later."""
    watched = state.watches.get(event.issue_id)
    if watched is None or watched.token != event.token:
        return
    state.in_hand, watched.token = watched.issue, None
    errand = watched.watch.errands[0]
    if event.error is not None:
        watched.tries += 1
        if event.again or (isinstance(errand, IssueMove) and watched.tries < ERRAND_TRIES):
            watched.due_at = now + look_backoff(state, watched.tries)
            watched.waits_for = f"{word_for(errand)} is tried again: {event.error}"
            return
        state.out.append(
            facts.ErrandFailed(
                issue=watched.issue,
                pull_request=watched.watch.pull_request.url,
                errand=word_for(errand),
                error=event.error,
            )
        )
    watched.tries, watched.due_at = 0, now
    left = replace(watched.watch, errands=watched.watch.errands[1:])
    if isinstance(errand, MergeCancellation):
        left = replace(left, merging=None, updated=False)
    record_watch(state, watched, left)
    if isinstance(errand, IssueMove):
        _issue_moved(state, watched, errand, event.error, now)
    if watched.watch.over and not watched.watch.errands:
        forget_watch(state, watched)


def _issue_moved(
    state: SchedulerState, watched: Watched, errand: IssueMove, error: str | None, now: float
) -> None:
    """Go on with an issue that is elsewhere as its pull request is over."""
    claim = state.claims.find(watched.issue.id)
    if error is not None:
        if claim is None:
            detail = f"it could not be moved to {errand.state}: {error}"
            reason = HoldReason.HANDOFF_FAILED
            hold(state, watched.issue, reason, detail, now, handoff_state=errand.state)
        return
    issue = replace(watched.issue, state=errand.state)
    state.out.append(rec.RecordHandoff(issue=issue, state=errand.state))
    match claim:
        case Held():
            end_hold(state, claim, f"it was moved to {errand.state}")
        case Waiting() | HandingOff(token=None):
            state.end_wait(claim, f"it was moved to {errand.state}")
        case None:
            pass
        case _:
            state.reconcile_at = now  # its run is stopped once it reads so
            return
    if state.policy.is_terminal(issue):
        finish(state, issue)
