"""Operators' commands: new settings, a poll, a pause, a stop, a retry, shutdown."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from sortie.model import HoldReason, Issue, StopReason, Streak, Trigger
from sortie.model.numbers import span
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.answers import answer_by_command
from sortie.scheduler.claims import (
    Claim,
    Cleaning,
    HandingOff,
    Held,
    Rechecking,
    Running,
    Starting,
    Stopping,
    Waiting,
)
from sortie.scheduler.command_replies import Reply
from sortie.scheduler.decisions import AnswerCommand
from sortie.scheduler.dispatch import put_back
from sortie.scheduler.explanation import unknown
from sortie.scheduler.gate_view import view_of
from sortie.scheduler.gates import FITNESS, ROOM, closed, spent_text
from sortie.scheduler.holds import end_hold, ended_by_reload, hold, hold_again
from sortie.scheduler.policy import Policy
from sortie.scheduler.polls import poll_now
from sortie.scheduler.spending import stop_if_spent
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.timing import STOPPED
from sortie.scheduler.waits import hand_off, set_reason, wait_for_run
from sortie.scheduler.watch_records import forgiven, record_watch

_RETRIED = "an operator asked for a retry"


def change_policy(state: SchedulerState, policy: Policy, now: float) -> None:
    """Apply other settings, to what runs too: states may mean something else."""
    old = state.policy
    former = {held.issue.id: state.policy_for(held.issue) for held in state.claims.of_kind(Held)}
    state.obey(policy)
    state.dispatch_needed = True
    state.candidates.reopen()
    for _, waiting in state.claims.due_in_order():
        set_reason(state, waiting, "")
    for claim in state.claims.of_kind(Held):
        state.in_hand = claim.issue
        before, after = former[claim.issue.id], state.policy_for(claim.issue)
        if ended_by_reload(claim, before, after, state.ledger.of_issue(claim.issue.id)):
            raised = claim.reason is HoldReason.USAGE_BUDGET_EXHAUSTED
            end_hold(state, claim, "the settings changed", keeps_budget=raised)
    for worked in list(state.worked()):
        state.in_hand = worked.issue
        stop_if_spent(state, worked.issue.id)
    if policy.keep_unsaved != old.keep_unsaved:
        for cleaning in state.claims.of_kind(Cleaning):
            if cleaning.kept and not cleaning.busy:
                state.claims[cleaning.issue.id] = replace(cleaning, due_at=now)
    state.hosts.forget(policy.every_host, settings_changed=True)
    state.webhooks.compared = False
    poll_now(state, now)


def answer(state: SchedulerState, ask: int, reply: Reply) -> None:
    """Answer an operator's command, if an operator waits for it."""
    if ask:
        state.out.append(AnswerCommand(ask, reply.verdict, reply.message))


def refresh(state: SchedulerState, now: float) -> Reply:
    """Poll and reconcile at once, with a look at the issues of all workspaces."""
    if state.draining:
        return Reply("conflict", "the daemon is stopping and polls no more")
    state.check_workspaces_at = now
    poll_now(state, now)
    rest = state.tracker_paused_until - now
    wait = f"; the tracker wants to be left alone for {span(rest)} more" if rest > 0 else ""
    return Reply("done", f"a poll was asked for{wait}")


def pause(state: SchedulerState, *, paused: bool) -> Reply:
    """Start no run until dispatch is resumed, or resume it."""
    running = sum(1 for _ in state.worked())
    done = f"dispatch is paused; {_runs(running)}" if paused else "dispatch goes on"
    if paused != state.paused:
        state.paused = paused
        state.dispatch_needed = True
        state.out.append(rec.RecordPause(paused=paused))
    for policy in () if paused else state.policy.every():
        if state.limits.of(policy.account) is not None:
            state.lift_limit(policy.account, "an operator had dispatch go on")
            done = f"{done}, and the usage limit of {policy.agent} is tried anew"
    return Reply("done", done)


def _runs(count: int) -> str:
    if count == 0:
        return "nothing is running"
    return "one run goes on" if count == 1 else f"{count} runs go on"


def stop(state: SchedulerState, name: str, now: float) -> Reply:
    """End an issue's run or wait and park it; a candidate is parked before it runs."""
    issue = state.find(name)
    if issue is None:
        return Reply("unknown", unknown(state, name))
    state.in_hand = issue
    if isinstance(state.claims.find(issue.id), Rechecking):
        put_back(state, issue.id)
    match state.claims.find(issue.id):
        case Starting() | Running() | Stopping() as claim:
            return _stop_run(state, claim)
        case HandingOff(token=int()) as claim:
            if not claim.stopped:
                state.out.append(rec.ForgetRetry(issue_id=issue.id))
                state.out.append(_promised(issue))
                state.claims[issue.id] = replace(claim, stopped=True)
            return Reply("done", f"{issue.identifier} is held if the handoff under way fails")
        case Waiting() | HandingOff() as claim:
            state.out.append(rec.ForgetRetry(issue_id=issue.id))
            hold(state, claim.issue, HoldReason.OPERATOR, STOPPED, now)
        case Held() as claim:
            hold_again(state, claim, now)
        case Cleaning() as claim:
            what = "kept for the work in it" if claim.kept else "being removed"
            message = f"{issue.identifier} is {issue.state}, and its workspace is {what}"
            return Reply("conflict", message)
        case _:
            hold(state, issue, HoldReason.OPERATOR, STOPPED, now)
    return Reply("done", f"{issue.identifier} is held")


def _stop_run(state: SchedulerState, claim: Starting | Running | Stopping) -> Reply:
    """End a run; the hold to come is on record at once, so that no crash on the way loses it."""
    issue = claim.issue
    if not isinstance(claim, Stopping):
        state.out.append(_promised(issue))
        state.stop(claim, StopReason.OPERATOR)
    elif claim.reason is not StopReason.OPERATOR:
        state.out.append(_promised(issue))
        state.claims[issue.id] = replace(claim, reason=StopReason.OPERATOR)
    if state.policy.is_terminal(issue):
        return Reply(
            "done", f"{issue.identifier} is being stopped; it is {issue.state}, so no hold"
        )
    return Reply("done", f"{issue.identifier} is being stopped, and is held then")


def _promised(issue: Issue) -> rec.RecordHold:
    return rec.RecordHold(
        issue=issue, reason=HoldReason.OPERATOR, detail=STOPPED, baseline_final=False
    )


def retry(state: SchedulerState, name: str, now: float) -> Reply:
    """Make a waiting or held issue due now, and reset its attempts.

    A handoff that waits or failed is tried again without a run of the agent.
    """
    issue = state.find(name)
    if issue is None:
        return Reply("unknown", unknown(state, name))
    state.in_hand = issue
    claim = state.claims.find(issue.id)
    if reason := _not_retried(state, issue, claim, now):
        return Reply("conflict", f"{issue.identifier} cannot be retried: {reason}")
    watched = state.watched(issue.id)
    moves = watched is not None and watched.watch.over is not None  # elsewhere than handed off
    hands_off = state.policy_for(issue).handoff_state is not None
    match claim:
        case Cleaning():
            state.claims[issue.id] = replace(claim, due_at=now, last_request=state.last_request)
            return Reply("done", f"the workspace of {issue.identifier} is looked at now")
        case HandingOff():
            hand_off(state, issue, claim.streak, now, tries=0, delay=0.0)
            return Reply("done", f"the handoff of {issue.identifier} is tried now")
        case Held(reason=HoldReason.HANDOFF_FAILED) if hands_off and not moves:
            end_hold(state, claim, _RETRIED)
            hand_off(state, issue, Streak(), now, tries=0, delay=0.0)
            return Reply("done", f"the handoff of {issue.identifier} is tried now")
        case Held():
            end_hold(state, claim, _RETRIED)
        case _:
            pass
    if watched is not None and not state.is_active(issue):
        record_watch(state, watched, forgiven(state, watched.watch))
        watched.tries, watched.refused, watched.due_at = 0, 0, now
        return Reply("done", f"pull request {watched.name} of {issue.identifier} is looked at now")
    wait_for_run(state, issue, Streak(), Trigger.OPERATOR, now, delay=0.0)
    return Reply("done", f"{issue.identifier} is due now{_but(state, issue, now)}")


def _not_retried(
    state: SchedulerState, issue: Issue, claim: Claim | None, now: float
) -> str | None:
    """Say why a retry is not possible, None where it is."""
    watched = state.watched(issue.id)
    match claim:
        case None if watched is not None and watched.watch.refusal in watched.watch.causes:
            return None
        case None:
            return f"it neither waits nor is held{_but(state, issue, now)}"
        case HandingOff(token=int()):
            return "its handoff is under way"
        case Held() if watched is not None:
            return None
        case Waiting() | HandingOff() | Held() if not state.is_active(issue):
            return f"its state {issue.state} is not active"
        case Waiting() | HandingOff() | Held():
            return None
        case Cleaning(busy=True):
            return f"it is {issue.state}, and its workspace is being removed"
        case Cleaning():
            return None
        case Stopping():
            return "its run is being stopped; try again when it is over"
        case Rechecking():
            return "it was chosen to run and is being re-read"
        case Starting() | Running():
            return f"it is running ({claim.run_id})"
        case _:
            assert_never(claim)


def _but(state: SchedulerState, issue: Issue, now: float) -> str:
    """Say what still keeps an issue from running, by the gates that a claim does not close."""
    view = view_of(state, now)
    spent = spent_text(state, issue)
    reason = closed(FITNESS, issue, view) or spent or closed(ROOM, issue, view)
    return f", but {reason}" if reason else ""


OperatorEvent = (
    ev.PolicyChanged
    | ev.RefreshRequested
    | ev.PauseAsked
    | ev.StopAsked
    | ev.RetryAsked
    | ev.AnswerSent
    | ev.StartsSuspended
    | ev.ShutdownRequested
)
"""What an operator asks for."""


def obey_operator(state: SchedulerState, event: OperatorEvent, now: float) -> None:
    """Do what an operator asks for, and answer."""
    match event:
        case ev.PolicyChanged(policy):
            change_policy(state, policy, now)
        case ev.RefreshRequested(ask):
            answer(state, ask, refresh(state, now))
        case ev.PauseAsked(paused, ask):
            answer(state, ask, pause(state, paused=paused))
        case ev.StopAsked(name, ask):
            answer(state, ask, stop(state, name, now))
        case ev.RetryAsked(name, ask):
            answer(state, ask, retry(state, name, now))
        case ev.AnswerSent(name, given, ask):
            answer(state, ask, answer_by_command(state, name, given, now))
        case ev.StartsSuspended(reason):
            state.suspended = reason
            state.dispatch_needed = True
        case ev.ShutdownRequested():
            shut_down(state)
        case _:
            assert_never(event)


def shut_down(state: SchedulerState) -> None:
    """Stop every run and start none; what waits is on record for the next start."""
    if state.draining:
        return
    state.draining = True
    for claim in list(state.claims.values()):
        if isinstance(claim, Starting | Running):
            state.in_hand = claim.issue
            state.stop(claim, StopReason.SHUTDOWN)
