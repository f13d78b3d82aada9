"""Re-reading what is claimed and what has a workspace, and acting on the answers."""

from __future__ import annotations

import math

from msgspec.structs import replace

from sortie import facts
from sortie.model import Issue, IssueId, StopReason, Streak, same_state
from sortie.model.asked_questions import QuestionAnswer
from sortie.model.numbers import seconds_text
from sortie.scheduler.answers import answered_by_read, take_default
from sortie.scheduler.claims import (
    Claim,
    Cleaning,
    Departure,
    HandingOff,
    Held,
    Rechecking,
    Running,
    Starting,
    Stopping,
    Waiting,
)
from sortie.scheduler.clean_ups import finish
from sortie.scheduler.dispatch import rechecked
from sortie.scheduler.events import IssuesRefreshed
from sortie.scheduler.holds import end_hold, set_baseline
from sortie.scheduler.questions import read_issues
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.timing import (
    MISSING_CONFIRMED_AFTER,
    WORKSPACE_CHECK_INTERVAL,
    hold_ended_by,
)
from sortie.scheduler.waits import end_wait
from sortie.scheduler.webhook_pauses import poll_pause


def reconcile(state: SchedulerState, now: float) -> None:
    """Ask for all running, waiting and held issues, and hourly for those with a workspace.

    One such question is under way at a time: a slow tracker gets no pile of them.
    """
    pause = min(poll_pause(state, now), WORKSPACE_CHECK_INTERVAL)
    state.reconcile_at = max(now + pause, state.tracker_paused_until)
    if state.reconciling is not None:
        return
    ids = {i for i, c in state.claims.items() if _wants_refresh(c)}
    if state.check_workspaces_at <= now:
        state.check_workspaces_at = now + WORKSPACE_CHECK_INTERVAL
        ids |= {i for i in state.workspaces if i not in state.claims}
    _ask(state, ids)


def reread(state: SchedulerState, ids: set[IssueId]) -> bool:
    """Ask for some of the issues in hand; return False where a question is under way."""
    if state.reconciling is not None:
        return False
    _ask(state, {i for i in ids if (c := state.claims.find(i)) and _wants_refresh(c)})
    return True


def confirm_missing(state: SchedulerState, now: float) -> None:
    """Ask again for issues that a first read did not find."""
    if state.reconciling is None and now >= state.tracker_paused_until:
        missed = {i for i, c in state.claims.missing.items() if _confirm_at(c) <= now}
        _ask(state, missed)


def confirm_missing_at(state: SchedulerState) -> float:
    """Return when ``confirm_missing`` next has something to do."""
    if state.reconciling is not None:
        return math.inf
    missing = state.claims.missing.values()
    return max(min(map(_confirm_at, missing), default=math.inf), state.tracker_paused_until)


def _confirm_at(claim: Claim) -> float:
    since = claim.missing_since
    if since is None or not _wants_refresh(claim):
        return math.inf
    return since + MISSING_CONFIRMED_AFTER


def _ask(state: SchedulerState, ids: set[IssueId]) -> None:
    if ids:
        request = read_issues(state, ids)
        state.reconciling = request.token
        state.out.append(request)


def _wants_refresh(claim: Claim) -> bool:
    match claim:
        case Rechecking():
            return False  # its own question is under way
        case HandingOff(token=token):
            return token is None
        case Cleaning(busy=busy):
            return not busy
        case _:
            return True


def refreshed(state: SchedulerState, event: IssuesRefreshed, now: float) -> None:
    """Act on the answer to a question of this module or of a dispatch."""
    if event.token == state.reconciling:
        state.reconciling = None
    if event.answered:
        state.tracker_answered(now)
    if any(i in state.workspaces and i not in state.claims for i in event.failed):
        state.check_workspaces_at = now  # they were not looked at: again with the next tick
    found = {issue.id: issue for issue in event.issues}
    # Claims stand in the order in which issues were chosen, and start in that order.
    claimed = state.claims.in_order(event.asked)
    for issue_id in claimed + sorted(event.asked.difference(claimed)):
        claim = state.claims.find(issue_id)
        issue = found.get(issue_id)
        state.in_hand = issue if issue is not None or claim is None else claim.issue
        match claim:
            case Rechecking(token=token):
                if token == event.token:
                    rechecked(state, claim, issue, event, now)
            case None:
                if issue is not None and state.policy.is_terminal(issue):
                    finish(state, issue)
            case _ if event.token <= claim.last_request:
                pass  # what it knows is newer
            case _ if issue_id in event.failed:
                # It is not known to be missing any more; a later read may begin that anew.
                state.claims[issue_id] = replace(claim, missing_since=None)
            case _ if issue is None:
                _missed(state, replace(claim, last_request=event.token), now)
            case _:
                fresh = replace(claim, missing_since=None, last_request=event.token)
                _update(state, fresh, issue, event.answers.get(issue_id), now)


def _missed(state: SchedulerState, claim: Claim, now: float) -> None:
    if isinstance(claim, Running) and claim.departure is not None:
        state.claims[claim.issue.id] = claim
        return  # its turn is about to end, or to be ended
    since = claim.missing_since
    if since is None:
        state.claims[claim.issue.id] = replace(claim, missing_since=now)
        return
    if now < since + MISSING_CONFIRMED_AFTER:
        return
    reason = "the tracker no longer knows it"
    match claim:
        case Starting() | Running():
            fresh = replace(claim, missing_since=None)
            _depart(state, fresh, StopReason.MISSING, reason, now)
        case Waiting() | HandingOff(token=None):
            end_wait(state, claim, reason)
        case Held():
            end_hold(state, claim, reason)
        case Cleaning(busy=False):
            state.release(claim.issue.id)
        case _:
            state.claims[claim.issue.id] = replace(claim, missing_since=None)


def _update(
    state: SchedulerState, claim: Claim, issue: Issue, answer: QuestionAnswer | None, now: float
) -> None:
    """Update a claim whose issue was read again; ``answer`` stands on its ticket."""
    match claim:
        case Starting() | Running():
            _update_run(state, claim, issue, now)
        case Stopping():
            state.claims[issue.id] = replace(claim, issue=issue)
        case Waiting():
            _update_wait(state, claim, issue)
        case Held():
            state.claims[issue.id] = claim
            if not answered_by_read(state, claim, issue, answer, now):
                _update_hold(state, claim, issue, now)
        case _:
            state.claims[issue.id] = claim
            _update_parked(state, claim, issue)


def _update_parked(state: SchedulerState, claim: Claim, issue: Issue) -> None:
    match claim:
        case HandingOff(token=None):
            if not same_state(claim.issue.state, issue.state):
                end_wait(state, claim, f"it was moved to {issue.state}")
                _after_release(state, issue)
        case Cleaning(busy=False):
            if not state.policy.is_terminal(issue):
                state.release(issue.id)
                _after_release(state, issue)
        case _:
            pass  # an answer of its own is on the way


def _update_run(state: SchedulerState, claim: Starting | Running, issue: Issue, now: float) -> None:
    fresh = claim if claim.issue is issue else replace(claim, issue=issue)
    if state.is_active(issue):
        state.claims[issue.id] = _stays(fresh)
        state.out.append(facts.IssueReconciled(action="keep", issue=issue))
        return
    terminal = state.policy.is_terminal(issue)
    reason = StopReason.TERMINAL if terminal else StopReason.INACTIVE
    _depart(state, fresh, reason, f"it was moved to {issue.state}", now)


def _stays(claim: Starting | Running) -> Starting | Running:
    """Return the claim of an issue that is active, or active again."""
    if isinstance(claim, Starting) or claim.departure is None:
        return claim
    return replace(claim, departure=None)


def _depart(
    state: SchedulerState, claim: Starting | Running, reason: StopReason, sentence: str, now: float
) -> None:
    """Let the turn of an issue that is no longer active end within ``inactive_grace``.

    The agent may have moved the issue itself just before it finishes. A run in which no turn has
    begun is stopped at once.
    """
    grace = state.policy_for(claim.issue).inactive_grace
    departure = Departure(reason=reason, sentence=sentence, stop_at=now + grace)
    if isinstance(claim, Starting):
        state.stop_departed(claim, departure)
        return
    if claim.departure is None:
        why = f"{sentence}; its turn has {seconds_text(grace)} to end"
        kept = facts.IssueReconciled(action="keep", issue=claim.issue, reason=why)
        state.out.append(kept)
    else:
        departure = replace(departure, stop_at=claim.departure.stop_at)
    state.claims[claim.issue.id] = replace(claim, departure=departure)


def _update_wait(state: SchedulerState, claim: Waiting, issue: Issue) -> None:
    if not state.is_active(issue):
        end_wait(state, claim, f"it was moved to {issue.state}")
        _after_release(state, issue)
        return
    streak = claim.streak
    if not same_state(claim.issue.state, issue.state):
        streak = Streak(failures=streak.failures, interruptions=streak.interruptions)
    reason = claim.reason
    if claim.due and issue != claim.issue:
        state.dispatch_needed, reason = True, ""  # a gate may have opened, or closed
    state.claims[issue.id] = replace(claim, issue=issue, streak=streak, reason=reason)


def _update_hold(state: SchedulerState, claim: Held, issue: Issue, now: float) -> None:
    ended_by = hold_ended_by(claim.issue, claim.reason, issue)
    if issue.id in state.crashed and ended_by is None:
        if not claim.baseline_final:
            set_baseline(state, claim, issue)
        return  # it reads as it did when the daemon crashed over it; to put it away may be why
    if state.policy.is_terminal(issue):
        ended_by = f"it is {issue.state}"
    elif not claim.baseline_final and _is_aftermath(state, claim, issue):
        set_baseline(state, claim, issue)
        return
    if ended_by is None:
        take_default(state, claim, issue, now)
        return
    end_hold(state, claim, ended_by)
    _after_release(state, issue)


def _is_aftermath(state: SchedulerState, claim: Held, issue: Issue) -> bool:
    """Tell whether the first read after a hold began shows what the run itself left.

    The agent may have moved the issue before the hold, but not to a state in which no hold applies.
    """
    return same_state(claim.issue.state, issue.state) or state.is_active(issue)


def _after_release(state: SchedulerState, issue: Issue) -> None:
    """Queue a released issue if it is active; clean up after it if it is terminal."""
    if state.policy.is_terminal(issue):
        finish(state, issue)
    elif state.is_active(issue):
        state.queue_up(issue)
    else:
        state.candidates.discard(issue.id)
