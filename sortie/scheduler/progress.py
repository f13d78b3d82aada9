"""What workers report while they run."""

from __future__ import annotations

from dataclasses import replace

from sortie.model import Issue
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Running, Starting, Stopping, Worked
from sortie.scheduler.decisions import HostBack, HostRested
from sortie.scheduler.hold_repairs import program_appeared
from sortie.scheduler.state import SchedulerState


def progressed(
    book: SchedulerState,
    event: ev.IssueMoved | ev.WorkspaceMade | ev.TurnStarted | ev.ProcessLaunched,
) -> None:
    """Note what a worker did; news of a run whose claim is over changes nothing."""
    claim = book.worked_by(event.run_id)
    if claim is None:
        return
    book.in_hand = claim.issue
    match event:
        case ev.IssueMoved(_, issue, by_us):
            _moved(book, claim, issue, by_us=by_us)
        case ev.WorkspaceMade(run_id, workspace, new):
            book.workspaces.keep(workspace, new=new)
            book.out.append(rec.RecordWorkspace(run_id=run_id, workspace=workspace))
        case ev.TurnStarted(_, turn):
            _turned(book, claim, turn)
        case ev.ProcessLaunched(run_id, process):
            host_reached(book, claim.host, launched=True)
            book.out.append(rec.RecordProcess(run_id=run_id, process=process))


def _moved(book: SchedulerState, claim: Worked, issue: Issue, *, by_us: bool) -> None:
    fresh = replace(claim, issue=issue, asof=book.token, missing_since=None)
    if by_us:
        fresh = replace(fresh, began_in=issue.state)
    if isinstance(fresh, Starting):
        fresh = replace(fresh, bound_for=None)
    if isinstance(fresh, Running) and book.policy.is_active(issue):
        fresh = replace(fresh, departure=None)
    book.claims[issue.id] = fresh
    book.unsettled = True  # a slot of its former state may be free


def _turned(book: SchedulerState, claim: Worked, turn: int) -> None:
    issue_id = claim.issue.id
    if isinstance(claim, Running) and claim.departure is not None:
        book.stop_departed(claim, claim.departure)  # it was let end a turn, not begin another
        return
    if turn == 1:
        book.sessions[issue_id] = book.sessions.get(issue_id, 0) + 1
    sessions = book.sessions.get(issue_id, 0)
    book.out.append(
        rec.RecordTurn(run_id=claim.run_id, issue_id=issue_id, turn=turn, sessions=sessions)
    )
    if isinstance(claim, Stopping):
        book.claims[issue_id] = replace(claim, turns=turn)
        return
    book.claims[issue_id] = Running(
        issue=claim.issue,
        run_id=claim.run_id,
        streak=claim.streak,
        host=claim.host,
        since=claim.since,
        began_in=claim.began_in,
        turns=turn,
        asof=claim.asof,
        missing_since=claim.missing_since,
    )
    book.unsettled = True  # it needs no slot any more in the state that it was bound for


def rest_host(
    book: SchedulerState, host: str, message: str, now: float, *, lacks_agent: bool = False
) -> None:
    """Give a host nothing to do for a while."""
    if host not in book.policy.hosts:
        return
    rested = book.hosts.trouble(host, message, book.policy, now, lacks_agent=lacks_agent)
    if rested is not None:
        book.out.append(HostRested(host, message, rested.until - now))
        book.unsettled = True


def host_reached(book: SchedulerState, host: str, *, launched: bool) -> None:
    """Trust a host again that was in trouble."""
    trouble = book.hosts.of(host)
    if book.hosts.reached(host, launched=launched):
        if trouble is not None and trouble.lacks_agent:
            program_appeared(book)
        book.out.append(HostBack(host))
        book.unsettled = True
