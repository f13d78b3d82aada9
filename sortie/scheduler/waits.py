"""Issues that wait: for their next run, or for their handoff."""

from __future__ import annotations

from msgspec.structs import replace

from sortie import facts
from sortie.model import Issue, Streak, Trigger, WaitKind
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Waiting
from sortie.scheduler.decisions import HandOff
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.timing import NO_SLOT


def wait_for_run(
    state: SchedulerState,
    issue: Issue,
    streak: Streak,
    trigger: Trigger,
    now: float,
    *,
    delay: float,
) -> None:
    """Plan the issue's next run."""
    kind = WaitKind.CONTINUATION if trigger is Trigger.CONTINUATION else WaitKind.RETRY
    state.claims[issue.id] = Waiting(
        issue=issue,
        kind=kind,
        trigger=trigger,
        streak=streak,
        due_at=now + delay,
        last_request=state.last_request,
    )
    state.out.append(
        rec.RecordRetry(issue=issue, kind=kind, trigger=trigger, streak=streak, delay=delay)
    )
    state.dispatch_needed = True


def end_wait(state: SchedulerState, claim: Waiting | HandingOff, reason: str) -> None:
    """End an issue's wait without a run."""
    state.release(claim.issue.id)
    state.out.append(rec.ForgetRetry(issue_id=claim.issue.id))
    state.out.append(facts.WaitEnded(issue=claim.issue, reason=reason))


def hand_off(
    state: SchedulerState, issue: Issue, streak: Streak, now: float, *, tries: int, delay: float
) -> None:
    """Plan to move an issue to the handoff state, at once where ``delay`` is 0."""
    state.claims[issue.id] = HandingOff(
        issue=issue,
        streak=streak,
        tries=tries,
        token=None,
        due_at=now + delay,
        last_request=state.last_request,
    )
    state.out.append(
        rec.RecordRetry(
            issue=issue,
            kind=WaitKind.HANDOFF,
            trigger=Trigger.HANDOFF,
            streak=streak,
            delay=delay,
            tries=tries,
        )
    )


def try_handoff(state: SchedulerState, claim: HandingOff) -> None:
    """Ask for the handoff that is due."""
    target = state.policy_for(claim.issue).handoff_state
    if target is None:
        end_wait(state, claim, "no handoff state is configured any more")
        return
    token = state.next_request()
    state.claims[claim.issue.id] = replace(claim, token=token)
    state.out.append(HandOff(token, claim.issue, target))


def set_reason(state: SchedulerState, claim: Waiting, reason: str = NO_SLOT) -> None:
    """Set the reason for which a due wait goes on waiting."""
    if claim.reason != reason:
        state.claims[claim.issue.id] = replace(claim, reason=reason)
