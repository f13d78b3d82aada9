"""Choosing what runs next, re-reading it, and starting it."""

from __future__ import annotations

from dataclasses import replace

from sortie.model import HoldReason, Issue, IssueId, Streak, WaitKind, same_state
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Held, Rechecking, Starting, Waiting
from sortie.scheduler.decisions import Dropped, Refresh, StartWorker
from sortie.scheduler.events import IssuesRefreshed
from sortie.scheduler.gates import FITNESS, ROOM, Load, View, closed, free_host
from sortie.scheduler.rules import UNANSWERED_PAUSE, OrderKey, order_key
from sortie.scheduler.state import Candidate, SchedulerState


def note_candidates(book: SchedulerState, issues: tuple[Issue, ...]) -> None:
    """Take the issues of a poll as the queue, in order."""
    queue = []
    for issue in issues:
        if _broke_us(book, issue):
            continue
        book.in_hand = issue
        queue.append(Candidate(order_key(issue), issue))
    book.in_hand = None
    queue.sort(key=lambda c: c.key)
    book.candidates = {c.issue.id: c for c in queue}
    book.out_of_order = False
    book.unsettled = True


def _broke_us(book: SchedulerState, issue: Issue) -> bool:
    """Tell whether a held issue made the daemon crash, whatever it is held for since; it is not
    touched then."""
    claim = book.claims.get(issue.id)
    return isinstance(claim, Held) and (
        claim.reason is HoldReason.INTERNAL_ERROR or issue.id in book.crashed
    )


def dispatch(book: SchedulerState, now: float) -> None:
    """Choose as many issues as there is room for, and have them re-read."""
    if book.draining or not book.unsettled or now < book.silent_until:
        return
    book.in_hand = None
    view = View(book, Load(book), now)
    chosen: list[tuple[Issue, Waiting | None, str]] = []
    for _, issue, waited in queue(book):
        if waited is None and _is_full(book, view):
            continue
        book.in_hand = issue
        if reason := closed(FITNESS, issue, view):
            if waited is not None:
                book.set_reason(waited, reason)
            continue
        if book.over_budget(issue.id):
            if waited is not None:
                book.out.append(rec.ForgetRetry(issue_id=issue.id))
            book.hold_for_budget(issue, now)
            continue
        host = free_host(issue, view)
        reason = closed(ROOM, issue, view)
        if reason is None and host is not None:
            view.load.add(issue, host, book.policy.in_progress_state)
            chosen.append((issue, waited, host))
        elif waited is not None:
            book.set_reason(waited, reason or "")
    book.unsettled = False  # a hold for the budget makes no room for others
    if chosen:
        token = book.next_token()
        for issue, waited, host in chosen:
            book.claims[issue.id] = Rechecking(issue=issue, token=token, host=host, waited=waited)
        book.out.append(Refresh(token, frozenset(issue.id for issue, _, _ in chosen)))


def _is_full(book: SchedulerState, view: View) -> bool:
    """Tell whether no fresh candidate needs a look; a due wait needs its reason all the same."""
    return (
        book.paused
        or book.store_error is not None
        or book.skipped is not None
        or view.load.total >= book.policy.max_concurrent_agents
    )


def queue(book: SchedulerState) -> list[tuple[OrderKey, Issue, Waiting | None]]:
    """Return due waits and unclaimed candidates in the order in which they are served."""
    due = []
    for claim in book.claims.values():
        if isinstance(claim, Waiting) and claim.due:
            book.in_hand = claim.issue
            due.append((order_key(claim.issue, _age(book, claim)), claim.issue, claim))
    served: list[tuple[OrderKey, Issue, Waiting | None]] = [
        (c.key, c.issue, None) for i, c in book.candidates.items() if i not in book.claims
    ]
    if due or book.out_of_order:
        served += due
        served.sort(key=lambda entry: (entry[0], entry[1].id))
    return served


def _age(book: SchedulerState, claim: Waiting) -> float | None:
    return book.epoch + claim.due_at if claim.kind is WaitKind.CONTINUATION else None


def rechecked(book: SchedulerState, claim: Rechecking, event: IssuesRefreshed, now: float) -> None:
    """Start the chosen issue, or drop it, now that it was re-read (or could not be)."""
    issue_id = claim.issue.id
    book.claims.pop(issue_id)
    issue = next((i for i in event.issues if i.id == issue_id), None)
    if issue is not None:
        _judge(book, claim, issue, now)
    elif issue_id in event.failed:
        if not event.answered:
            pause = min(UNANSWERED_PAUSE, book.policy.poll_interval)
            book.silent_until = now + pause
        _put_back_unread(book, claim, event.error, now)
    else:
        _drop(book, claim, claim.issue, "the tracker no longer knows it")


def _judge(book: SchedulerState, claim: Rechecking, issue: Issue, now: float) -> None:
    view = View(book, Load(book), now)
    unfit = closed(FITNESS, issue, view)
    active = book.policy.is_active(issue)
    if unfit and (claim.waited is None or not active):
        _drop(book, claim, issue, unfit)
        if book.policy.is_terminal(issue):
            book.finish(issue)
        return
    host = free_host(issue, view)
    reason = unfit or closed(ROOM, issue, view)
    if reason is None and host is not None:
        _start(book, claim, issue, host, now)
        return
    book.unsettled = True  # the room that was kept for it may do for another
    if claim.waited is not None:
        book.claims[issue.id] = replace(
            claim.waited, issue=issue, reason=reason or "", asof=claim.token
        )
    else:
        book.queue_up(issue)
        book.out.append(Dropped(issue, "dropped", reason or ""))


def _drop(book: SchedulerState, claim: Rechecking, issue: Issue, reason: str) -> None:
    book.candidates.pop(issue.id, None)
    book.unsettled = True
    if claim.waited is not None:
        book.out.append(rec.ForgetRetry(issue_id=issue.id))
    book.out.append(Dropped(issue, "dropped", reason))


def _put_back_unread(book: SchedulerState, claim: Rechecking, error: str, now: float) -> None:
    """A due wait stays due, and is re-read at the pace of the polls; a candidate comes again."""
    book.unsettled = True
    book.candidates.pop(claim.issue.id, None)
    reason = f"it could not be re-read: {error}"
    if claim.waited is None or claim.waited.reason != reason:
        book.out.append(Dropped(claim.issue, "error", reason))
    if claim.waited is not None:
        again_at = now + book.policy.poll_interval
        book.claims[claim.issue.id] = replace(
            claim.waited, due=False, again_at=again_at, reason=reason
        )


def _start(book: SchedulerState, claim: Rechecking, issue: Issue, host: str, now: float) -> None:
    run_id, waited = book.new_run_id(), claim.waited
    streak = waited.streak if waited is not None else Streak()
    in_progress = book.policy.in_progress_state
    moves = in_progress is not None and not same_state(in_progress, issue.state)
    book.claims[issue.id] = Starting(
        issue=issue,
        run_id=run_id,
        streak=streak,
        host=host,
        since=now,
        began_in=issue.state,
        bound_for=in_progress if moves else None,
        asof=claim.token,
    )
    book.candidates.pop(issue.id, None)
    if waited is not None:
        book.out.append(rec.ForgetRetry(issue_id=issue.id))
    book.out.append(
        rec.RecordRun(run_id=run_id, issue=issue, streak=streak, host=host, agent=book.policy.agent)
    )
    book.out.append(
        StartWorker(run_id=run_id, issue=issue, streak=streak, host=host, fetched_at=now)
    )


def put_back(book: SchedulerState, issue_id: IssueId) -> None:
    """Undo the choice of an issue that is being re-read; its wait, if any, is on record still."""
    claim = book.claims.pop(issue_id)
    assert isinstance(claim, Rechecking)
    if claim.waited is not None:
        book.claims[issue_id] = claim.waited
