"""Choosing what runs next, re-reading it, and starting it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from heapq import merge
from operator import itemgetter

from msgspec.structs import replace

from sortie import facts
from sortie.model import (
    HoldReason,
    Issue,
    IssueId,
    state_key,
)
from sortie.scheduler import records as rec
from sortie.scheduler.candidates import Candidate, GateVerdict, Place
from sortie.scheduler.claim_table import share_of
from sortie.scheduler.claims import Held, Rechecking, Waiting
from sortie.scheduler.clean_ups import finish
from sortie.scheduler.decisions import Refresh
from sortie.scheduler.events import IssuesRefreshed
from sortie.scheduler.gate_view import View, view_of
from sortie.scheduler.gates import FITNESS, ROOM, SHARED, closed, first_closed, spent_text
from sortie.scheduler.holds import hold_for_budget, hold_for_stages
from sortie.scheduler.host_gate import free_host
from sortie.scheduler.run_start import start_run
from sortie.scheduler.stages import goes_in_circles
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.timing import UNANSWERED_PAUSE, order_key
from sortie.scheduler.waits import set_reason


def note_candidates(state: SchedulerState, issues: tuple[Issue, ...]) -> None:
    """Replace the queue by the issues of a poll."""
    left_out = {c.issue.id for c in state.claims.of_kind(Held) if _broke_us(state, c)}
    state.matched.clear()
    state.candidates.take(issues, left_out, state.claims, partial(_candidate, state))
    state.in_hand = None
    state.dispatch_needed = True


def _candidate(state: SchedulerState, issue: Issue) -> Candidate:
    state.in_hand = issue
    return Candidate((order_key(issue), issue.id), issue)


def _broke_us(state: SchedulerState, claim: Held) -> bool:
    """Tell whether a held issue made the daemon crash; it is not queued then."""
    return claim.reason is HoldReason.INTERNAL_ERROR or claim.issue.id in state.crashed


def dispatch(state: SchedulerState, now: float) -> None:
    """Choose as many issues as there is room for, and have them re-read."""
    if state.draining or not state.dispatch_needed or now < state.no_dispatch_before:
        return
    state.in_hand = None
    view = view_of(state, now)
    chosen: list[tuple[Issue, Waiting | None, str]] = []
    spent: list[tuple[Issue, Waiting | None]] = []
    unfit: dict[IssueId, GateVerdict] = {}
    shut: dict[str, str] = {}
    for issue, waited in _served(state, view, shut):
        state.in_hand = issue
        if verdict := first_closed(FITNESS, issue, view):
            if waited is None:
                unfit[issue.id] = verdict
            else:
                set_reason(state, waited, verdict.reason or "")
            continue
        if state.over_budget(issue) or goes_in_circles(state, issue):
            spent.append((issue, waited))
            continue
        host, room = free_host(issue, view), first_closed(ROOM, issue, view)
        if room is None and host is not None:
            bound_for = state.policy_for(issue).in_progress_state
            view.load.add(share_of(issue, host, bound_for, state.rule_of(issue)))
            chosen.append((issue, waited, host))
            continue
        reason = (room and room.reason) or ""
        if room is not None and room.gate in SHARED:
            shut[group_of(state, issue)] = reason
        if waited is not None:
            set_reason(state, waited, reason)
    state.candidates.set_aside(unfit)
    for issue, waited in spent:
        _hold_spent(state, issue, waited, now)
    state.dispatch_needed = False  # a hold for the budget makes no room for others
    if chosen:
        token = state.next_request()
        for issue, waited, host in chosen:
            state.claims[issue.id] = Rechecking(
                issue=issue,
                token=token,
                host=host,
                rule=state.rule_of(issue),
                bound_for=state.policy_for(issue).in_progress_state,
                waited=waited,
            )
        state.out.append(Refresh(token, frozenset(issue.id for issue, _, _ in chosen)))


def _hold_spent(state: SchedulerState, issue: Issue, waited: Waiting | None, now: float) -> None:
    state.in_hand = issue
    if waited is not None:
        state.out.append(rec.ForgetRetry(issue_id=issue.id))
    if not hold_for_stages(state, issue, now):
        hold_for_budget(state, issue, now)


def _served(
    state: SchedulerState, view: View, shut: Mapping[str, str]
) -> Iterator[tuple[Issue, Waiting | None]]:
    """Yield due waits and open candidates in the order in which they are served.

    Left out are those that need no look: candidates once there is no room for any, and all issues
    of a group for which ``shut`` says why there is none.
    """

    def fresh() -> Iterator[tuple[Place, Issue, Waiting | None]]:
        for candidate in state.candidates.open():
            if _is_full(state, view):
                return
            if not shut or group_of(state, candidate.issue) not in shut:
                yield candidate.place, candidate.issue, None

    due = ((place, claim.issue, claim) for place, claim in state.claims.due_in_order())
    for _, issue, waited in merge(due, fresh(), key=itemgetter(0)):
        if waited is None or not _has_reason(state, waited, shut):
            yield issue, waited


def group_of(state: SchedulerState, issue: Issue) -> str:
    """Return what issues have in common of which the shared gates say the same."""
    return f"{state_key(issue.state)}\n{state.rule_of(issue)}"


def _has_reason(state: SchedulerState, claim: Waiting, shut: Mapping[str, str]) -> bool:
    """Tell whether a due wait has the reason already that it would get.

    It lost the reason if its issue or the settings changed since.
    """
    if not claim.reason or claim.issue.formerly:
        return False
    return claim.reason == shut.get(group_of(state, claim.issue))


def _is_full(state: SchedulerState, view: View) -> bool:
    """Tell whether no candidate can be chosen; a due wait gets its reason all the same."""
    return (
        state.paused
        or state.suspended is not None
        or state.store_error is not None
        or state.skipped is not None
        or view.load.total >= view.slots
    )


def queue(state: SchedulerState) -> list[Issue]:
    """Return due waits and all unclaimed candidates in the order in which they are served."""
    served = [(place, claim.issue) for place, claim in state.claims.due_in_order()]
    served += [(c.place, c.issue) for i, c in state.candidates.items() if i not in state.claims]
    return [issue for _, issue in sorted(served, key=itemgetter(0))]


def rechecked(
    state: SchedulerState,
    claim: Rechecking,
    issue: Issue | None,
    event: IssuesRefreshed,
    now: float,
) -> None:
    """Start the chosen issue, or drop it, now that it was re-read (or could not be).

    ``issue`` is what the event says of it, None where that is nothing.
    """
    issue_id = claim.issue.id
    del state.claims[issue_id]
    if issue is not None:
        _judge(state, claim, issue, now)
    elif issue_id in event.failed:
        if not event.answered:
            pause = min(UNANSWERED_PAUSE, state.policy.poll_interval)
            state.no_dispatch_before = max(now + pause, state.tracker_paused_until)
        _put_back_unread(state, claim, event.error, now)
    else:
        _drop(state, claim, claim.issue, "the tracker no longer knows it")


def _judge(state: SchedulerState, claim: Rechecking, issue: Issue, now: float) -> None:
    view = view_of(state, now)
    unfit = closed(FITNESS, issue, view)
    active = state.is_active(issue)
    if unfit and (claim.waited is None or not active):
        _drop(state, claim, issue, unfit)
        if state.policy.is_terminal(issue):
            finish(state, issue)
        return
    host = free_host(issue, view)
    # A reload may have taken from what it may use while it was re-read.
    spent = spent_text(state, issue) or goes_in_circles(state, issue)
    reason = unfit or spent or closed(ROOM, issue, view)
    if reason is None and host is not None:
        start_run(state, claim, issue, host, now)
        return
    state.dispatch_needed = True  # the room that was kept for it may do for another
    if claim.waited is not None:
        state.claims[issue.id] = replace(
            claim.waited, issue=issue, reason=reason or "", last_request=claim.token
        )
    else:
        state.queue_up(issue)
        state.out.append(facts.DispatchDropped(issue=issue, outcome="dropped", reason=reason or ""))


def _drop(state: SchedulerState, claim: Rechecking, issue: Issue, reason: str) -> None:
    state.candidates.discard(issue.id)
    state.dispatch_needed = True
    if claim.waited is not None:
        state.out.append(rec.ForgetRetry(issue_id=issue.id))
    state.out.append(facts.DispatchDropped(issue=issue, outcome="dropped", reason=reason))


def _put_back_unread(state: SchedulerState, claim: Rechecking, error: str, now: float) -> None:
    """A due wait stays due, and is re-read at the pace of the polls; a candidate comes again."""
    state.dispatch_needed = True
    state.candidates.discard(claim.issue.id)
    reason = f"it could not be re-read: {error}"
    if claim.waited is None or claim.waited.reason != reason:
        state.out.append(facts.DispatchDropped(issue=claim.issue, outcome="error", reason=reason))
    if claim.waited is not None:
        again_at = now + state.policy.poll_interval
        state.claims[claim.issue.id] = replace(
            claim.waited, due=False, again_at=again_at, reason=reason
        )


def put_back(state: SchedulerState, issue_id: IssueId) -> None:
    """Undo the choice of an issue that is being re-read; its wait, if any, is on record still."""
    claim = state.claims.pop(issue_id)
    assert isinstance(claim, Rechecking)
    if claim.waited is not None:
        state.claims[issue_id] = claim.waited
