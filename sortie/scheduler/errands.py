"""Errands at a forge or the tracker: one after another, each until it is done or given up."""

from __future__ import annotations

from msgspec.structs import replace

from sortie import facts
from sortie.model import HoldReason
from sortie.model.watches import Errand, IssueMove, MergeCancellation, word_for
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Held, Waiting
from sortie.scheduler.clean_ups import finish
from sortie.scheduler.decisions import RunErrand
from sortie.scheduler.holds import end_hold, hold
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.waits import end_wait
from sortie.scheduler.watch_records import forget_watch, is_expired, look_backoff, record_watch
from sortie.scheduler.watch_table import Watched

MOVE_TRIES = 5
"""Tries after which an issue is held that the tracker does not move."""

OUTAGE_TRIES = 100
"""Tries after which an errand is left of a service that is in trouble each time, about a day."""


def begin_errand(state: SchedulerState, watched: Watched) -> None:
    """Do the first errand of a watch."""
    watched.token, watched.doing = state.next_request(), "errand"
    watch = watched.watch
    rule, errand = state.rule_of(watched.issue), watch.errands[0]
    state.out.append(RunErrand(watched.token, watched.issue, watch.pull_request, errand, rule))


def errand_done(state: SchedulerState, event: ev.ErrandDone, now: float) -> None:
    """Take the first errand off, or try it again later."""
    watched = state.watches.get(event.issue_id)
    if watched is None or watched.token != event.token:
        return
    state.in_hand, watched.token = watched.issue, None
    errand = watched.watch.errands[0]
    if event.error is not None and _failed(state, watched, errand, event, now):
        return
    watched.tries, watched.due_at = 0, now
    left = replace(watched.watch, errands=watched.watch.errands[1:])
    if isinstance(errand, MergeCancellation):
        left = replace(left, merging=None, updated=False)
    record_watch(state, watched, left)
    if isinstance(errand, IssueMove) and event.error is None:
        _issue_moved(state, watched, errand, now)
    is_seen_over = watched.watch.over and watched.watch.pull_request.state != "open"
    if is_seen_over and not watched.watch.errands:
        forget_watch(state, watched)


def _failed(
    state: SchedulerState, watched: Watched, errand: Errand, event: ev.ErrandDone, now: float
) -> bool:
    """Take in that an errand failed, and tell whether it is tried again. A move of the issue is
    tried until its pull request was watched for ``watch_days``; after some tries the issue is held
    as well, so that a person sees it."""
    watched.tries += 1
    error, is_move = event.error or "", isinstance(errand, IssueMove)
    most = OUTAGE_TRIES if event.again else MOVE_TRIES if is_move else 1
    watched.due_at = now + look_backoff(state, watched.tries)
    watched.waits_for = f"{word_for(errand)} is tried again: {error}"
    if watched.tries < most:
        return True
    if watched.tries == most:
        url, word = watched.watch.pull_request.url, word_for(errand)
        failed = facts.ErrandFailed(issue=watched.issue, pull_request=url, errand=word, error=error)
        state.out.append(failed)
    if isinstance(errand, IssueMove) and state.claims.find(watched.issue.id) is None:
        detail = f"it could not be moved to {errand.state}: {error}"
        reason, stands_in = HoldReason.HANDOFF_FAILED, state.policy_for(watched.issue).handoff_state
        hold(state, watched.issue, reason, detail, now, handoff_state=stands_in)
    return is_move and not is_expired(state, watched, now)


def _issue_moved(state: SchedulerState, watched: Watched, errand: IssueMove, now: float) -> None:
    """Go on with an issue that is elsewhere as its pull request is over."""
    claim = state.claims.find(watched.issue.id)
    issue = replace(watched.issue, state=errand.state)
    state.out.append(rec.RecordHandoff(issue=issue, state=errand.state))
    match claim:
        case Held():
            end_hold(state, claim, f"it was moved to {errand.state}")
        case Waiting() | HandingOff(token=None):
            end_wait(state, claim, f"it was moved to {errand.state}")
        case None:
            pass
        case _:
            state.reconcile_at = now  # its run is stopped once it reads so
            return
    if state.policy.is_terminal(issue):
        finish(state, issue)
