"""Explain how one issue stands, why, and when it may run; the gates that decide explain."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from msgspec import Struct

from sortie.model import HoldReason, Issue, RunId, Trigger
from sortie.model.asked_questions import AskedQuestion
from sortie.scheduler.candidates import GateVerdict
from sortie.scheduler.claims import (
    WORKED,
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
from sortie.scheduler.dispatch import queue
from sortie.scheduler.gates import FITNESS, HOST_SLOT, USAGE_LIMIT, explain
from sortie.scheduler.host_gate import eligible_hosts
from sortie.scheduler.questions import open_question
from sortie.scheduler.rule_choice import passed_over
from sortie.scheduler.snapshot import SOON
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.watch_standing import WatchExplanation, explain_watch
from sortie.scheduler.ways_out import STATE_CHANGE, ways_out


class IssueStanding(StrEnum):
    """What is being done about an issue."""

    CANDIDATE = "candidate"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    WAITING = "waiting"
    HANDING_OFF = "handing_off"
    HELD = "held"
    CLEANING = "cleaning"
    WATCHED = "watched"


class Explanation(Struct, frozen=True, kw_only=True):
    """How an issue stands. ``gates`` are in the order in which they decide.

    ``since`` (of a run or a hold) and ``next_at`` are monotonic seconds, None where no time is
    known; a ``next_at`` that has passed means as soon as the gates open. ``next_step`` is what must
    happen before it runs. ``watch`` is about its pull request, if that is watched. ``rule`` decides
    for it, "" is the top level; ``passed_over`` say why each rule before that one does not. It is
    ``held`` by a claim where it is, and its ``question`` waits for an answer.
    """

    issue: Issue
    standing: IssueStanding
    detail: str
    since: float | None
    run_id: RunId | None
    turn: int | None
    attempt: int | None
    gates: tuple[GateVerdict, ...]
    next_at: float | None
    next_step: str
    ways_out: tuple[str, ...]
    watch: WatchExplanation | None = None
    rule: str = ""
    passed_over: tuple[str, ...] = ()
    held: Held | None = None
    question: AskedQuestion | None = None


def explain_issue(state: SchedulerState, name: str, now: float) -> Explanation | str:
    """Explain the issue of this id or identifier; return a sentence where it is not known."""
    issue = state.find(name)
    if issue is None:
        return unknown(state, name)
    claim = state.claims.find(issue.id)
    gates = explain(issue, state, now)
    watched = state.watched(issue.id)
    watch = None if watched is None else explain_watch(state, watched, now)
    if claim is None and watch is not None and issue.id not in state.candidates:
        return _watched(state, issue, watch)
    next_at, next_step = _next(state, issue, claim, gates)
    worked = claim if isinstance(claim, WORKED) else None
    return Explanation(
        issue=issue,
        standing=_standing(claim),
        detail=_detail(state, claim),
        since=claim.since if isinstance(claim, Starting | Running | Held) else None,
        run_id=worked.run_id if worked else None,
        turn=worked.turns if worked else None,
        attempt=_attempt(claim),
        gates=gates,
        next_at=next_at,
        next_step=next_step,
        ways_out=ways_out(state.policy_for(issue), claim, watched=watch is not None),
        watch=watch,
        rule=state.rule_of(issue),
        passed_over=passed_over(state.policy, issue, state.rule_of(issue)),
        held=claim if isinstance(claim, Held) else None,
        question=open_question(state, claim),
    )


def _watched(state: SchedulerState, issue: Issue, watch: WatchExplanation) -> Explanation:
    """Explain an issue whose pull request is watched; its gates are those of the merge."""
    standing = watch.standing
    url = standing.watch.pull_request.url
    return Explanation(
        issue=issue,
        standing=IssueStanding.WATCHED,
        detail=f"its pull request {url} is watched: {standing.waits_for}",
        since=None,
        run_id=None,
        turn=None,
        attempt=None,
        gates=watch.gates,
        next_at=standing.next_at,
        next_step="the pull request is looked at again",
        ways_out=(STATE_CHANGE,),
        watch=watch,
        rule=state.rule_of(issue),
        passed_over=passed_over(state.policy, issue, state.rule_of(issue)),
    )


def unknown(state: SchedulerState, name: str) -> str:
    """Say that an issue is not known, and why that may be."""
    seen = f"among the {len(state.candidates)} issues in an active state that the last poll found"
    trouble = state.poll_error or state.skipped
    doubt = f" (the last poll failed: {trouble})" if trouble else ""
    return (
        f"{name} neither runs, waits nor is held, and is not {seen}{doubt}; look at its spelling,"
        " and in the tracker at its state"
    )


def _standing(claim: Claim | None) -> IssueStanding:
    match claim:
        case None:
            return IssueStanding.CANDIDATE
        case Rechecking() | Starting():
            return IssueStanding.STARTING
        case Running():
            return IssueStanding.RUNNING
        case Stopping():
            return IssueStanding.STOPPING
        case Waiting():
            return IssueStanding.WAITING
        case HandingOff():
            return IssueStanding.HANDING_OFF
        case Held():
            return IssueStanding.HELD
        case Cleaning():
            return IssueStanding.CLEANING
        case _:
            assert_never(claim)


def _detail(state: SchedulerState, claim: Claim | None) -> str:
    match claim:
        case None:
            return "no run of it is planned or under way"
        case Rechecking():
            return "it was chosen to run and is being re-read"
        case Starting():
            return f"its run {claim.run_id} prepares on host {claim.host}; no turn has begun"
        case Running(departure=departure):
            where = f"its run {claim.run_id} is in turn {claim.turns} on host {claim.host}"
            where += f", taken over {claim.taken_over}" if claim.taken_over else ""
            return where if departure is None else f"{where}; {departure.sentence}, so it ends soon"
        case Stopping():
            return f"its run {claim.run_id} is being stopped ({claim.reason})"
        case Waiting():
            return f"it waits for its {claim.kind}, {_after(claim)}"
        case HandingOff(token=None, refusal=str(refusal)) if refusal:
            to = state.policy_for(claim.issue).handoff_state
            return f"its handoff to {to} waits until the tracker takes changes: {refusal}"
        case HandingOff(token=None):
            times = f"{claim.tries} time{'' if claim.tries == 1 else 's'}"
            to = state.policy_for(claim.issue).handoff_state
            return f"its handoff to {to} failed {times} and is tried again"
        case HandingOff():
            return f"it is being moved to {state.policy_for(claim.issue).handoff_state}"
        case Held():
            return f"{claim.reason}: {claim.detail}"
        case Cleaning(kept=kept) if kept:
            return "; ".join(
                f"its workspace {at.workspace.path} on {at.workspace.host} is kept: {at.reason}"
                for at in kept
            )
        case Cleaning():
            trouble = f"; the last try failed: {claim.error}" if claim.error else ""
            return f"its workspace is being removed{trouble}"
        case _:
            assert_never(claim)


_TRIGGER_TEXTS = {
    Trigger.ERROR: "after a failure",
    Trigger.CONTINUATION: "after a run that ended well",
    Trigger.HANDOFF: "after a handoff",
    Trigger.STALL: "after a stall",
    Trigger.TIMEOUT: "after a turn that took too long",
    Trigger.INTERRUPTED: "as its run was interrupted",
    Trigger.USAGE_LIMIT: "as the agent's usage limit was reached",
    Trigger.OPERATOR: "as an operator asked",
    Trigger.REACTION: "as something has happened to its pull request",
    Trigger.ANSWER: "as its question was answered",
}


def _after(claim: Waiting) -> str:
    failures = claim.streak.failures
    why = _TRIGGER_TEXTS[claim.trigger]
    if failures:
        return f"{why} ({failures} failure{'' if failures == 1 else 's'} in a row)"
    return why


def _attempt(claim: Claim | None) -> int | None:
    match claim:
        case Starting() | Running() | Stopping() | Waiting():
            return claim.streak.failures
        case Rechecking(waited=Waiting() as waited):
            return waited.streak.failures
        case _:
            return None


def _next(
    state: SchedulerState, issue: Issue, claim: Claim | None, gates: tuple[GateVerdict, ...]
) -> tuple[float | None, str]:
    """Return when the issue may run next, where a time is known, and what it waits for."""
    match claim:
        case Starting() | Running():
            return None, "it runs"
        case Stopping():
            return None, "what follows is decided when its processes are gone"
        case Rechecking():
            return None, "it starts when the tracker confirms that it may"
        case Held(reason=HoldReason.QUESTION, due_at=None):
            return None, "somebody answers its question"
        case Held(reason=HoldReason.QUESTION, due_at=due_at):
            return due_at, "somebody answers its question, or its default counts"
        case Held():
            return None, "it does not run before its hold ends"
        case HandingOff(token=None):
            return claim.due_at, "the handoff is tried again; the agent does not run for it"
        case HandingOff():
            return None, "the tracker's answer to the handoff"
        case Cleaning(kept=kept, due_at=due_at) if kept:
            return due_at, "the workspace is looked at again, and removed once all work is pushed"
        case Cleaning():
            return None, "it is finished and does not run again"
        case Waiting(due=False):
            at = max(claim.due_at, claim.again_at)
            return at, claim.reason or "then it is due, and starts when the gates are open"
        case Waiting():
            return _rest_over(state, issue, gates) or claim.due_at, _due(state, issue, gates)
        case None:
            return _rest_over(state, issue, gates), _due(state, issue, gates)
        case _:
            assert_never(claim)


def _rest_over(state: SchedulerState, issue: Issue, gates: tuple[GateVerdict, ...]) -> float | None:
    """Return when the first host for an issue is tried again, or its agent's usage limit ends,
    where that is what it waits for."""
    closed = next((v for v in gates if v.reason is not None), None)
    limit = state.limits.of(state.policy_for(issue).account)
    if closed is not None and closed.gate == USAGE_LIMIT and limit is not None:
        return limit.until if limit.backing_off else None
    if closed is None or closed.gate != HOST_SLOT:
        return None
    account = state.policy_for(issue).account
    troubles = [state.hosts.of(host, account) for host in eligible_hosts(issue, state)]
    return min((t.until for t in troubles if t is not None and t.backing_off), default=None)


def _due(state: SchedulerState, issue: Issue, gates: tuple[GateVerdict, ...]) -> str:
    """Say what an issue waits for that is not kept back by a claim."""
    closed = next((v for v in gates if v.reason is not None), None)
    if closed is None:
        return SOON
    if closed.gate in {name for name, _ in FITNESS}:
        return f"a poll must find that this has changed: {closed.reason}"
    ahead = [queued.id for queued in queue(state)]
    place = ahead.index(issue.id) if issue.id in ahead else 0
    where = "it is the first" if place == 0 else f"{place} come before it"
    return f"{closed.reason}; {where} of {len(ahead)} in the queue"
