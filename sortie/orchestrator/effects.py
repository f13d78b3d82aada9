"""What the orchestrator does in the background: each effect ends with its answer, if it has one."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass

import trio

from sortie.model import (
    Failed,
    Finish,
    Finished,
    Issue,
    KnownWorkspace,
    RunId,
    RunReport,
    SortieError,
    StoreError,
    TrackerError,
    TrackerErrorKind,
    cut,
    same_state,
)
from sortie.model.spending import told_amounts
from sortie.orchestrator.context import OrchestratorContext
from sortie.orchestrator.preflight import READY, Readiness
from sortie.resources import shortage_behind
from sortie.scheduler import Event
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.rules import SHORTAGE_DELAY
from sortie.telemetry import facts
from sortie.trackers import Tracker
from sortie.transports.rank import ranked
from sortie.worker.cleanup import remove_workspace

Tell = Callable[[Event], None]

COMMENT_PAUSE, LONGEST_COMMENT_PAUSE = 10.0, 300.0
"""Seconds before a comment is tried again where the tracker could not be asked; they double."""

COMMENT_PATIENCE = 6 * 3600.0
"""Seconds after which a comment is given up that could not be made until then."""

_PASSING = frozenset({TrackerErrorKind.UNAVAILABLE, TrackerErrorKind.CLOSED})

EARLY_POLL_PAUSE = 5.0
"""Seconds, at least, between two polls that a tracker asks for by itself."""


async def poll(context: OrchestratorContext, states: tuple[str, ...], tell: Tell) -> None:
    """Look whether dispatch is possible, fetch candidates and tell of them."""
    began = trio.current_time()
    result, count, error = "success", None, None
    try:
        ready, issues = await _candidates(context, states)
        if ready.fault is not None:
            result, error = "skipped", ready.fault
            tell(ev.PollFailed(ready.fault, skipped=True))
            return
        count = len(issues)
        if trouble := ready.hindrance or ready.shortage:
            result, error = "skipped", trouble
        tell(ev.CandidatesFetched(issues, ready.hindrance, ready.shortage))
        if pause := context.tracker.list_pause():
            tell(ev.PollsPutOff(pause))
    except (TrackerError, StoreError) as exc:
        result, error = "error", str(exc)
        _tell_of_rest(exc, tell)
        tell(ev.PollFailed(error))
        if isinstance(exc, TrackerError) and exc.lists_only and exc.retry_after is not None:
            tell(ev.PollsPutOff(exc.retry_after))
    except Exception as exc:  # the edge: what the preflight looks at may have bugs
        result, error = "error", f"the poll crashed: {type(exc).__name__}"
        context.publish(facts.AdapterCrashed(where="poll", traceback=traceback.format_exc()))
        tell(ev.PollFailed(error))
    finally:
        seconds = trio.current_time() - began
        context.publish(
            facts.PollCompleted(result=result, seconds=seconds, candidates=count, error=error)
        )


async def _candidates(
    context: OrchestratorContext, states: tuple[str, ...]
) -> tuple[Readiness, tuple[Issue, ...]]:
    """Return what a preflight found, and the candidates, of which a fault leaves none."""
    preflight, fetch = context.preflight, context.tracker.fetch_candidates
    if preflight.was_good():
        issues = tuple(await fetch(states))
        ready = await preflight.look() if issues else READY
        return ready, issues if ready.fault is None else ()
    ready = await preflight.look()
    return ready, tuple(await fetch(states)) if ready.fault is None else ()


async def poll_when_changed(tracker: Tracker, tell: Tell) -> None:
    """Have issues polled early whenever the tracker says that some have changed."""
    while True:
        await tracker.changed()
        tell(ev.RefreshRequested())
        await trio.sleep(EARLY_POLL_PAUSE)


async def refresh(context: OrchestratorContext, question: do.Refresh, tell: Tell) -> None:
    """Re-read issues and tell of them; what could not be read is said to have failed."""
    token, ids = question.token, question.ids
    try:
        answer = await context.tracker.fetch_by_ids(ids)
    except TrackerError as exc:
        _tell_of_rest(exc, tell)
        tell(ev.IssuesRefreshed(token, ids, (), ids, str(exc), answered=False))
        return
    for failure in answer.failed.values():
        _tell_of_rest(failure, tell)
    failed = frozenset(answer.failed)
    error = cut("; ".join(sorted({str(exc) for exc in answer.failed.values()})))
    tell(ev.IssuesRefreshed(token, ids, answer.issues, failed, error))


async def hand_off(context: OrchestratorContext, question: do.Transition, tell: Tell) -> None:
    """Move an issue to the handoff state if it still stands where the run left it.

    A tracker that wants to be left alone takes no changes for a while, which is no failed try.
    """
    issue, state = question.issue, question.state
    kind, error = None, None
    try:
        await _move_despite_shortages(context, issue, state)
    except TrackerError as exc:
        kind, error = exc.kind, str(exc)
        if _tell_of_rest(exc, tell):
            kind = TrackerErrorKind.CLOSED
    context.publish(
        facts.TransitionCompleted(
            issue=issue,
            lifecycle="handoff",
            state=state,
            result="success" if error is None else "error",
            error=error,
            closed=kind is TrackerErrorKind.CLOSED,
        )
    )
    tell(ev.TransitionAnswered(issue.id, question.token, kind, error or ""))


def _tell_of_rest(error: Exception, tell: Tell) -> bool:
    """Tell for how long the tracker wants to be left alone, if an error says so."""
    if not isinstance(error, TrackerError) or error.retry_after is None or error.lists_only:
        return False
    tell(ev.TrackerRests(error.retry_after))
    return True


async def _move_despite_shortages(context: OrchestratorContext, issue: Issue, state: str) -> None:
    """Move an issue; what this machine runs out of meanwhile is no failure of the handoff."""
    while True:
        try:
            return await _move_if_unchanged(context, issue, state)
        except TrackerError as exc:
            if shortage_behind(exc) is None:
                raise
        await trio.sleep(SHORTAGE_DELAY)


async def _move_if_unchanged(context: OrchestratorContext, issue: Issue, state: str) -> None:
    answer = await context.tracker.fetch_by_ids({issue.id})
    if issue.id in answer.failed:
        raise answer.failed[issue.id]
    if not answer.issues:
        raise TrackerError(
            TrackerErrorKind.NOT_FOUND, f"the tracker does not know {issue.identifier}"
        )
    present = answer.issues[0]
    if same_state(present.state, state):
        # It was moved already, before a crash or while the answer was lost; perhaps not wholly.
        await context.tracker.complete_move(present)
        return
    if not same_state(present.state, issue.state):
        raise TrackerError(
            TrackerErrorKind.CONFLICT,
            f"{issue.identifier} was moved from {issue.state} to {present.state} meanwhile",
        )
    await context.tracker.transition(present, state)


async def clean(context: OrchestratorContext, question: do.CleanWorkspace, tell: Tell) -> None:
    """Remove an issue's workspaces on all hosts and tell which are gone."""
    removed: list[KnownWorkspace] = []
    errors: list[str] = []
    for known in question.workspaces:
        error = await _clean_one(context, question.issue, known)
        if error is None:
            removed.append(known)
        else:
            errors.append(error)
        context.publish(
            facts.WorkspaceRemoved(
                issue_id=question.issue.id,
                issue_identifier=known.identifier,
                path=known.path,
                error=error,
            )
        )
    tell(ev.WorkspaceCleaned(question.issue.id, tuple(removed), "; ".join(errors) or None))


async def _clean_one(
    context: OrchestratorContext, issue: Issue, known: KnownWorkspace
) -> str | None:
    try:
        with ranked():
            await remove_workspace(
                context.run_context_for(known.host), issue, known, context.publish
            )
    except SortieError as exc:
        return str(exc)
    except Exception as exc:  # the edge: a bug in one clean-up ends neither it nor the daemon
        context.publish(facts.AdapterCrashed(where="clean", traceback=traceback.format_exc()))
        return f"the clean-up crashed: {type(exc).__name__}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What is to be said on an issue of one moment in the life of a run."""

    run_id: RunId
    lifecycle: str
    body: str

    @property
    def key(self) -> str:
        """The name of this comment, which no other has."""
        return f"{self.run_id}:{self.lifecycle}"


async def comment(context: OrchestratorContext, issue: Issue, remark: Remark) -> None:
    """Write a comment, later where the tracker cannot be asked now or wants to be left alone.

    It has the same key at each try, so that none makes a second one. A failure that does not pass
    is told and has no other consequence.
    """
    error: str | None = None
    give_up_at, pause = trio.current_time() + COMMENT_PATIENCE, COMMENT_PAUSE
    while True:
        try:
            await context.tracker.comment(issue, remark.body, remark.key)
            error = None
            break
        except TrackerError as exc:
            error = str(exc)
            wait = pause if exc.retry_after is None else exc.retry_after
            if exc.kind not in _PASSING or trio.current_time() + wait > give_up_at:
                break
        await trio.sleep(wait)
        pause = min(2 * pause, LONGEST_COMMENT_PAUSE)
    context.publish(
        facts.CommentCompleted(
            issue=issue,
            lifecycle=remark.lifecycle,
            result="success" if error is None else "error",
            error=error,
        )
    )


_FINISHED = {
    Finish.TURNS_USED: "it took all its turns",
    Finish.LEFT_ACTIVE: "the issue was moved out of its active states",
    Finish.GONE: "the tracker no longer knows the issue",
    Finish.UNREADABLE: "the tracker could not be asked how the issue stands",
    Finish.REVIEW: "the agent asks a person to look at its work",
    Finish.BLOCKED: "the agent cannot go on without a person",
}


def comment_on_dispatch(attempt: int, host: str) -> str:
    """Say that work begins; ``attempt`` is what log and history call so."""
    again = f" (attempt {attempt})" if attempt else ""
    return f"Sortie started an agent on this issue{again}, host {host}."


def comment_on_end(report: RunReport) -> str:
    """Say how a run ended."""
    turns = f"{report.turns} turn{'' if report.turns == 1 else 's'}"
    spent = "".join(f", {told}" for told in told_amounts(report.spent))
    match report.end:
        case Failed(kind=kind, message=message):
            return f"The run failed after {turns}{spent}: {kind}: {message}"
        case Finished(finish=finish):
            return f"The run ended after {turns}{spent}: {_FINISHED[finish]}."
        case _:
            return f"The run was stopped after {turns}{spent}."
