"""Choosing what runs next, re-reading it, and starting it."""

from __future__ import annotations

from dataclasses import replace

from sortie.model import Issue, IssueId, Streak, WaitKind, same_state
from sortie.scheduler import records as rec
from sortie.scheduler.book import Book, Candidate
from sortie.scheduler.claims import Rechecking, Starting, Waiting
from sortie.scheduler.decisions import Dropped, Refresh, StartWorker
from sortie.scheduler.events import IssuesRefreshed
from sortie.scheduler.gates import FITNESS, ROOM, Load, View, closed, free_host
from sortie.scheduler.rules import OrderKey, order_key


def note_candidates(book: Book, issues: tuple[Issue, ...]) -> None:
    """Take the issues of a poll as the queue, in order."""
    queue = sorted((Candidate(order_key(i), i) for i in issues), key=lambda c: c.key)
    book.candidates = {c.issue.id: c for c in queue}
    book.unsettled = True


def dispatch(book: Book, now: float) -> None:
    """Choose as many issues as there is room for, and have them re-read."""
    if book.draining or not book.unsettled:
        return
    book.unsettled = False
    view = View(book, Load(book))
    chosen: list[tuple[Issue, Waiting | None, str]] = []
    for _, issue, waited in _queue(book):
        if waited is None and _is_full(book, view):
            continue
        if reason := closed(FITNESS, issue, view):
            if waited is not None:
                book.set_reason(waited, reason)
            continue
        if book.over_budget(issue.id):
            if waited is not None:
                book.out.append(rec.ForgetRetry(issue_id=issue.id))
            book.hold_for_budget(issue, now)
            continue
        host = free_host(book.policy, view.load)
        reason = closed(ROOM, issue, view)
        if reason is None and host is not None and not (chosen and book.hindrance):
            view.load.add(issue, host, book.policy.in_progress_state)
            chosen.append((issue, waited, host))
        elif waited is not None:
            book.set_reason(waited, reason or book.hindrance or "")
    if chosen:
        token = book.next_token()
        for issue, waited, host in chosen:
            book.claims[issue.id] = Rechecking(issue=issue, token=token, host=host, waited=waited)
        book.out.append(Refresh(token, frozenset(issue.id for issue, _, _ in chosen)))


def _is_full(book: Book, view: View) -> bool:
    """Tell whether no fresh candidate needs a look; a due wait needs its reason all the same."""
    return (
        book.paused
        or book.skipped is not None
        or view.load.total >= book.policy.max_concurrent_agents
    )


def _queue(book: Book) -> list[tuple[OrderKey, Issue, Waiting | None]]:
    """Return due waits and unclaimed candidates, first come first."""
    due = [
        (order_key(c.issue, _age(book, c)), c.issue, c)
        for c in book.claims.values()
        if isinstance(c, Waiting) and c.due
    ]
    queue: list[tuple[OrderKey, Issue, Waiting | None]] = [
        (c.key, c.issue, None) for i, c in book.candidates.items() if i not in book.claims
    ]
    if due:
        queue += due
        queue.sort(key=lambda entry: (entry[0], entry[1].id))
    return queue


def _age(book: Book, claim: Waiting) -> float | None:
    return book.epoch + claim.due_at if claim.kind is WaitKind.CONTINUATION else None


def rechecked(book: Book, claim: Rechecking, event: IssuesRefreshed, now: float) -> None:
    """Start the chosen issue, or drop it, now that it was re-read (or could not be)."""
    issue_id = claim.issue.id
    book.claims.pop(issue_id)
    issue = next((i for i in event.issues if i.id == issue_id), None)
    if issue is not None:
        _judge(book, claim, issue, now)
    elif issue_id in event.failed:
        _put_back_unread(book, claim, event.error, now)
    else:
        _drop(book, claim, claim.issue, "the tracker no longer knows it")


def _judge(book: Book, claim: Rechecking, issue: Issue, now: float) -> None:
    view = View(book, Load(book))
    unfit = closed(FITNESS, issue, view)
    active = book.policy.is_active(issue)
    if unfit and (claim.waited is None or not active):
        _drop(book, claim, issue, unfit)
        if book.policy.is_terminal(issue):
            book.finish(issue)
        return
    host = free_host(book.policy, view.load)
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
        book.candidates[issue.id] = Candidate(order_key(issue), issue)
        book.out.append(Dropped(issue, "dropped", reason or ""))


def _drop(book: Book, claim: Rechecking, issue: Issue, reason: str) -> None:
    book.candidates.pop(issue.id, None)
    book.unsettled = True
    if claim.waited is not None:
        book.out.append(rec.ForgetRetry(issue_id=issue.id))
    book.out.append(Dropped(issue, "dropped", reason))


def _put_back_unread(book: Book, claim: Rechecking, error: str, now: float) -> None:
    """A due wait stays due, and is re-read at the pace of the polls; a candidate comes again."""
    book.unsettled = True
    book.candidates.pop(claim.issue.id, None)
    if claim.waited is not None:
        book.claims[claim.issue.id] = replace(
            claim.waited,
            due=False,
            again_at=now + book.policy.poll_interval,
            reason=f"it could not be re-read: {error}",
        )
    else:
        book.out.append(Dropped(claim.issue, "error", f"it could not be re-read: {error}"))


def _start(book: Book, claim: Rechecking, issue: Issue, host: str, now: float) -> None:
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


def put_back(book: Book, issue_id: IssueId) -> None:
    """Undo the choice of an issue that is being re-read; its wait, if any, is on record still."""
    claim = book.claims.pop(issue_id)
    assert isinstance(claim, Rechecking)
    if claim.waited is not None:
        book.claims[issue_id] = claim.waited
