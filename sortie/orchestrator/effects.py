"""Effects: what the orchestrator does in background tasks. Each ends with its answer, if any."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import nullcontext, suppress

import trio

from sortie.model import (
    Issue,
    KeptWorkspace,
    KnownWorkspace,
    SortieError,
    StoreError,
    TrackerError,
    TrackerErrorKind,
    UnsavedWorkError,
    cut,
    same_state,
)
from sortie.model.asked_questions import answer_on_ticket
from sortie.orchestrator.context import OrchestratorContext
from sortie.resources import shortage_behind
from sortie.scheduler import Event
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.timing import SHORTAGE_DELAY
from sortie.telemetry import facts
from sortie.trackers import Tracker
from sortie.transports.rank import ranked
from sortie.worker.cleanup import remove_workspace, require_saved, rescue_work

Tell = Callable[[Event], None]

EARLY_POLL_PAUSE = 5.0
"""Seconds, at least, between two polls that a tracker asks for by itself."""


async def poll(context: OrchestratorContext, states: tuple[str, ...], tell: Tell) -> None:
    """Make the preflight, fetch candidates and report them."""
    began = trio.current_time()
    result, count, error = "success", None, None
    try:
        ready = await context.preflight()
        if ready.fault is not None:
            result, error = "skipped", ready.fault
            tell(ev.PollFailed(ready.fault, skipped=True))
            return
        issues = tuple(await context.tracker.fetch_candidates(states))
        count = len(issues)
        if trouble := ready.hindrance or ready.shortage:
            result, error = "skipped", trouble
        hindrances = ready.rule_hindrances
        tell(ev.CandidatesFetched(issues, ready.hindrance, ready.shortage, hindrances))
        if pause := context.tracker.list_pause():
            tell(ev.PollsPutOff(pause))
    except (TrackerError, StoreError) as exc:
        result, error = "error", str(exc)
        _report_pause(exc, tell)
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


async def poll_when_changed(tracker: Tracker, tell: Tell) -> None:
    """Have issues polled early whenever the tracker says that some have changed."""
    while True:
        await tracker.changed()
        tell(ev.RefreshRequested())
        await trio.sleep(EARLY_POLL_PAUSE)


async def refresh(context: OrchestratorContext, question: do.Refresh, tell: Tell) -> None:
    """Read issues again and report them, and those that could not be read."""
    token, ids = question.token, question.ids
    try:
        answer = await context.tracker.fetch_by_ids(ids)
    except TrackerError as exc:
        _report_pause(exc, tell)
        tell(ev.IssuesRefreshed(token, ids, (), ids, str(exc), answered=False))
        return
    for failure in answer.failed.values():
        _report_pause(failure, tell)
    failed = frozenset(answer.failed)
    error = cut("; ".join(sorted({str(exc) for exc in answer.failed.values()})))
    found = (
        (issue.id, answer_on_ticket(question.questions[issue.id], issue.comments))
        for issue in answer.issues
        if issue.id in question.questions
    )
    answers = {issue_id: said for issue_id, said in found if said is not None}
    tell(ev.IssuesRefreshed(token, ids, answer.issues, failed, error, answers=answers))


async def hand_off(context: OrchestratorContext, question: do.HandOff, tell: Tell) -> None:
    """Move an issue to the handoff state if it still stands where the run left it.

    A tracker that asks for a pause counts as being in an outage.
    """
    issue, state = question.issue, question.state
    kind, error = None, None
    try:
        await _move_despite_shortages(context, issue, state)
    except TrackerError as exc:
        kind, error = exc.kind, str(exc)
        if _report_pause(exc, tell):
            kind = TrackerErrorKind.CLOSED
    context.publish(
        facts.TransitionCompleted(
            issue=issue,
            lifecycle="handoff",
            state=state,
            result="success" if error is None else "error",
            error=error,
            closed=kind is not None and kind.is_outage,
        )
    )
    tell(ev.TransitionAnswered(issue.id, question.token, kind, error or "", state))


def _report_pause(error: Exception, tell: Tell) -> bool:
    """Report the pause that an error of the tracker asks for, if it asks for one."""
    if not isinstance(error, TrackerError) or error.retry_after is None or error.lists_only:
        return False
    tell(ev.TrackerPaused(error.retry_after))
    return True


async def _move_despite_shortages(context: OrchestratorContext, issue: Issue, state: str) -> None:
    """Move an issue; try again where this machine is short of a resource."""
    while True:
        try:
            return await _move_if_unchanged(context, issue, state)
        except TrackerError as exc:
            if shortage_behind(exc) is None:
                raise
        await trio.sleep(SHORTAGE_DELAY)


async def _move_if_unchanged(context: OrchestratorContext, issue: Issue, state: str) -> None:
    if context.compares:
        try:
            await context.tracker.transition(issue, state)
        except TrackerError as exc:
            if exc.kind not in (TrackerErrorKind.CONFLICT, TrackerErrorKind.NOT_FOUND):
                raise
        else:
            return
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
    """Remove an issue's workspaces on all hosts and report which are gone."""
    removed: list[KnownWorkspace] = []
    errors: list[str] = []
    kept: list[KeptWorkspace] = []
    for known in question.workspaces:
        spared = known not in question.unsaved_too
        try:
            error = await _clean_one(context, question.issue, known, spared=spared)
        except UnsavedWorkError as exc:
            kept.append(KeptWorkspace(workspace=known, reason=str(exc)))
            continue
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
    error = "; ".join(errors) or None
    tell(ev.WorkspaceCleaned(question.issue.id, tuple(removed), error, tuple(kept)))


async def _clean_one(
    context: OrchestratorContext, issue: Issue, known: KnownWorkspace, *, spared: bool
) -> str | None:
    """Remove a workspace and return what went wrong. Raises UnsavedWorkError where it is spared
    for the work in it."""
    try:
        with ranked():
            tools = context.run_context_for(known.host, known.rule)
            if tools.remote is not None:
                with nullcontext() if spared else suppress(UnsavedWorkError):
                    await rescue_work(tools, issue, known, context.publish)
            elif spared:
                await require_saved(tools, issue, known)
            await remove_workspace(tools, issue, known, context.publish)
    except UnsavedWorkError:
        raise
    except SortieError as exc:
        return str(exc)
    except Exception as exc:  # the edge: a bug in one clean-up ends neither it nor the daemon
        context.publish(facts.AdapterCrashed(where="clean", traceback=traceback.format_exc()))
        return f"the clean-up crashed: {type(exc).__name__}"
    return None
