"""Choosing what runs next, re-reading it, and starting it."""

from __future__ import annotations

from dataclasses import replace

from sortie.model import AgentSession, HoldReason, Issue, IssueId, Streak, WaitKind, same_state
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Held, Rechecking, Starting, Waiting
from sortie.scheduler.decisions import Dropped, Refresh, StartWorker
from sortie.scheduler.events import IssuesRefreshed
from sortie.scheduler.gates import FITNESS, ROOM, Load, View, closed, free_host
from sortie.scheduler.holds import hold_for_budget
from sortie.scheduler.rules import UNANSWERED_PAUSE, OrderKey, order_key
from sortie.scheduler.state import Candidate, SchedulerState


def note_candidates(state: SchedulerState, issues: tuple[Issue, ...]) -> None:
    """Take the issues of a poll as the queue, in order."""
    queue = []
    for issue in issues:
        if _broke_us(state, issue):
            continue
        state.in_hand = issue
        queue.append(Candidate(order_key(issue), issue))
    state.in_hand = None
    queue.sort(key=lambda c: c.key)
    state.candidates = {c.issue.id: c for c in queue}
    state.out_of_order = False
    state.unsettled = True


def _broke_us(state: SchedulerState, issue: Issue) -> bool:
    """Tell whether a held issue made the daemon crash, whatever it is held for since; it is not
    touched then."""
    claim = state.claims.get(issue.id)
    return isinstance(claim, Held) and (
        claim.reason is HoldReason.INTERNAL_ERROR or issue.id in state.crashed
    )


def dispatch(state: SchedulerState, now: float) -> None:
    """Choose as many issues as there is room for, and have them re-read."""
    if state.draining or not state.unsettled or now < state.silent_until:
        return
    state.in_hand = None
    view = View(state, Load(state), now)
    chosen: list[tuple[Issue, Waiting | None, str]] = []
    for _, issue, waited in queue(state):
        if waited is None and _is_full(state, view):
            continue
        state.in_hand = issue
        if reason := closed(FITNESS, issue, view):
            if waited is not None:
                state.set_reason(waited, reason)
            continue
        if state.over_budget(issue.id):
            if waited is not None:
                state.out.append(rec.ForgetRetry(issue_id=issue.id))
            hold_for_budget(state, issue, now)
            continue
        host = free_host(issue, view)
        reason = closed(ROOM, issue, view)
        if reason is None and host is not None:
            view.load.add(issue, host, state.policy.in_progress_state)
            chosen.append((issue, waited, host))
        elif waited is not None:
            state.set_reason(waited, reason or "")
    state.unsettled = False  # a hold for the budget makes no room for others
    if chosen:
        token = state.next_token()
        for issue, waited, host in chosen:
            state.claims[issue.id] = Rechecking(issue=issue, token=token, host=host, waited=waited)
        state.out.append(Refresh(token, frozenset(issue.id for issue, _, _ in chosen)))


def _is_full(state: SchedulerState, view: View) -> bool:
    """Tell whether no fresh candidate needs a look; a due wait needs its reason all the same."""
    return (
        state.paused
        or state.store_error is not None
        or state.skipped is not None
        or view.load.total >= state.policy.max_concurrent_agents
    )


def queue(state: SchedulerState) -> list[tuple[OrderKey, Issue, Waiting | None]]:
    """Return due waits and unclaimed candidates in the order in which they are served."""
    due = []
    for claim in state.claims.values():
        if isinstance(claim, Waiting) and claim.due:
            state.in_hand = claim.issue
            due.append((order_key(claim.issue, _age(state, claim)), claim.issue, claim))
    served: list[tuple[OrderKey, Issue, Waiting | None]] = [
        (c.key, c.issue, None) for i, c in state.candidates.items() if i not in state.claims
    ]
    if due or state.out_of_order:
        served += due
        served.sort(key=lambda entry: (entry[0], entry[1].id))
    return served


def _age(state: SchedulerState, claim: Waiting) -> float | None:
    return state.epoch + claim.due_at if claim.kind is WaitKind.CONTINUATION else None


def rechecked(state: SchedulerState, claim: Rechecking, event: IssuesRefreshed, now: float) -> None:
    """Start the chosen issue, or drop it, now that it was re-read (or could not be)."""
    issue_id = claim.issue.id
    state.claims.pop(issue_id)
    issue = next((i for i in event.issues if i.id == issue_id), None)
    if issue is not None:
        _judge(state, claim, issue, now)
    elif issue_id in event.failed:
        if not event.answered:
            pause = min(UNANSWERED_PAUSE, state.policy.poll_interval)
            state.silent_until = max(now + pause, state.rests_until)
        _put_back_unread(state, claim, event.error, now)
    else:
        _drop(state, claim, claim.issue, "the tracker no longer knows it")


def _judge(state: SchedulerState, claim: Rechecking, issue: Issue, now: float) -> None:
    view = View(state, Load(state), now)
    unfit = closed(FITNESS, issue, view)
    active = state.policy.is_active(issue)
    if unfit and (claim.waited is None or not active):
        _drop(state, claim, issue, unfit)
        if state.policy.is_terminal(issue):
            state.finish(issue)
        return
    host = free_host(issue, view)
    reason = unfit or closed(ROOM, issue, view)
    if reason is None and host is not None:
        _start(state, claim, issue, host, now)
        return
    state.unsettled = True  # the room that was kept for it may do for another
    if claim.waited is not None:
        state.claims[issue.id] = replace(
            claim.waited, issue=issue, reason=reason or "", asof=claim.token
        )
    else:
        state.queue_up(issue)
        state.out.append(Dropped(issue, "dropped", reason or ""))


def _drop(state: SchedulerState, claim: Rechecking, issue: Issue, reason: str) -> None:
    state.candidates.pop(issue.id, None)
    state.unsettled = True
    if claim.waited is not None:
        state.out.append(rec.ForgetRetry(issue_id=issue.id))
    state.out.append(Dropped(issue, "dropped", reason))


def _put_back_unread(state: SchedulerState, claim: Rechecking, error: str, now: float) -> None:
    """A due wait stays due, and is re-read at the pace of the polls; a candidate comes again."""
    state.unsettled = True
    state.candidates.pop(claim.issue.id, None)
    reason = f"it could not be re-read: {error}"
    if claim.waited is None or claim.waited.reason != reason:
        state.out.append(Dropped(claim.issue, "error", reason))
    if claim.waited is not None:
        again_at = now + state.policy.poll_interval
        state.claims[claim.issue.id] = replace(
            claim.waited, due=False, again_at=again_at, reason=reason
        )


def _start(state: SchedulerState, claim: Rechecking, issue: Issue, host: str, now: float) -> None:
    run_id, waited = state.new_run_id(), claim.waited
    streak = waited.streak if waited is not None else Streak()
    in_progress = state.policy.in_progress_state
    moves = in_progress is not None and not same_state(in_progress, issue.state)
    state.claims[issue.id] = Starting(
        issue=issue,
        run_id=run_id,
        streak=streak,
        host=host,
        since=now,
        began_in=issue.state,
        bound_for=in_progress if moves else None,
        asof=claim.token,
    )
    state.candidates.pop(issue.id, None)
    if waited is not None:
        state.out.append(rec.ForgetRetry(issue_id=issue.id))
    state.out.append(
        rec.RecordRun(
            run_id=run_id, issue=issue, streak=streak, host=host, agent=state.policy.agent
        )
    )
    state.out.append(
        StartWorker(
            run_id=run_id,
            issue=issue,
            streak=streak,
            host=host,
            fetched_at=now,
            resume=_resumable(state, issue, host),
        )
    )


def _resumable(state: SchedulerState, issue: Issue, host: str) -> AgentSession | None:
    """Return the session that a run of the issue can go on with, if its directory is still the
    issue's."""
    session = state.agent_sessions.get(issue.id)
    if session is None or (session.host, session.agent) != (host, state.policy.agent):
        return None
    known = {(workspace.host, workspace.path) for workspace in state.workspaces.of(issue.id)}
    return session if (host, session.workspace) in known else None


def put_back(state: SchedulerState, issue_id: IssueId) -> None:
    """Undo the choice of an issue that is being re-read; its wait, if any, is on record still."""
    claim = state.claims.pop(issue_id)
    assert isinstance(claim, Rechecking)
    if claim.waited is not None:
        state.claims[issue_id] = claim.waited
