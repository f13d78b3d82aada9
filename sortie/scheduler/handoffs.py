"""Handoffs: what follows when the tracker has answered, and when an operator stopped the issue."""

from __future__ import annotations

from msgspec.structs import replace

from sortie import facts
from sortie.model import (
    HoldReason,
    Issue,
    TrackerErrorKind,
)
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Held
from sortie.scheduler.events import TransitionAnswered
from sortie.scheduler.holds import hold, park, record_of
from sortie.scheduler.stages import end_stage
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.timing import (
    HANDOFF_TRIES,
    STOPPED,
    backoff,
)
from sortie.scheduler.waits import hand_off

_HANDOFF_HOPELESS = frozenset({TrackerErrorKind.NOT_FOUND, TrackerErrorKind.PERMISSION})


def keep_promise(state: SchedulerState, issue: Issue, now: float) -> None:
    """Hold an issue as an operator was promised, which is on record since then."""
    held = Held(
        issue=issue,
        reason=HoldReason.OPERATOR,
        detail=STOPPED,
        since=now,
        last_request=state.last_request,
        baseline_final=False,
    )
    state.out.append(replace(record_of(held), again=True))
    park(state, held)


def drop_promise(state: SchedulerState, issue: Issue, reason: str) -> None:
    state.out.append(rec.ForgetHold(issue_id=issue.id))
    state.out.append(facts.HoldEnded(issue=issue, reason=reason))


def handoff_answered(state: SchedulerState, event: TransitionAnswered, now: float) -> None:
    """Release a handed-off issue, or plan the next try, or park it."""
    claim = state.claims.find(event.issue_id)
    if not isinstance(claim, HandingOff) or claim.token != event.token:
        return  # the answer to an earlier request
    issue, tries = claim.issue, claim.tries + 1
    state.in_hand = issue
    if event.error_kind is None:
        _reopened(state, now)
        if event.state is not None:
            state.out.append(rec.RecordHandoff(issue=issue, state=event.state))
            end_stage(state, issue, event.state)
            if (watched := state.watches.get(issue.id)) is not None:
                watched.issue = replace(issue, state=event.state)
    if claim.stopped:
        state.release(issue.id)
        if event.error_kind is not None:
            keep_promise(state, issue, now)
            return
        state.candidates.discard(issue.id)
        drop_promise(state, issue, f"it was moved to {state.policy_for(issue).handoff_state}")
    elif event.error_kind is None or event.error_kind is TrackerErrorKind.CONFLICT:
        state.release(issue.id)
        state.candidates.discard(issue.id)
        state.out.append(rec.ForgetRetry(issue_id=issue.id))
        if event.error_kind is not None:
            state.out.append(facts.WaitEnded(issue=issue, reason=event.error))
    elif event.error_kind.is_outage:
        refusals = claim.refusals + 1
        rest = state.tracker_paused_until - now
        delay = rest if rest > 0 else backoff(refusals, state.policy_for(issue))
        hand_off(state, issue, claim.streak, now, tries=claim.tries, delay=delay)
        waiting = state.claims[issue.id]
        assert isinstance(waiting, HandingOff)
        state.claims[issue.id] = replace(waiting, refusals=refusals, refusal=event.error)
    elif event.error_kind in _HANDOFF_HOPELESS or tries >= HANDOFF_TRIES:
        state.out.append(rec.ForgetRetry(issue_id=issue.id))
        _hold_unmoved(state, issue, event.error, now)
    else:
        delay = backoff(tries, state.policy_for(issue))
        hand_off(state, issue, claim.streak, now, tries=tries, delay=delay)


def _hold_unmoved(state: SchedulerState, issue: Issue, error: str, now: float) -> None:
    wanted = state.policy_for(issue).handoff_state
    detail = f"it could not be moved to {wanted}: {error}"
    hold(state, issue, HoldReason.HANDOFF_FAILED, detail, now, handoff_state=wanted)


def _reopened(state: SchedulerState, now: float) -> None:
    """Try at once what waits only for the tracker to take changes again."""
    for issue_id in list(state.claims.handoffs):
        claim = state.claims[issue_id]
        if isinstance(claim, HandingOff) and claim.refusals:
            hand_off(state, claim.issue, claim.streak, now, tries=claim.tries, delay=0.0)
