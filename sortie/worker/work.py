"""A run from its dispatch to the report on it."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import trio
from msgspec.structs import replace

from sortie.model import LOCAL, ErrorKind, Failed, RunEnd, RunReport, Stopped, WorkspaceError
from sortie.resources import note, shortage_behind
from sortie.resources.lease import LeaseLost
from sortie.telemetry import facts
from sortie.worker.context import Assignment, RunContext, RunReporter, RunScopes
from sortie.worker.outcome import Abandoned, blamed
from sortie.worker.run import Run

_ROOT_MAY_BE_WHY = frozenset(
    {
        ErrorKind.WORKSPACE_ERROR,
        ErrorKind.HOOK_FAILED,
        ErrorKind.PORT_EXIT,
        ErrorKind.RESPONSE_ERROR,
    }
)
"""Kinds of failures that a full or read-only disk below the workspace root may be behind."""


async def work(
    job: Assignment, context: RunContext, reporter: RunReporter, scopes: RunScopes
) -> RunReport:
    """Work on an issue until it is done, out of turns, failed or stopped, and say what was spent.

    Whatever an adapter raises that it should not is told, and fails this run alone.
    """
    run = Run(job, context, reporter, scopes)
    began = trio.current_time() - (0.0 if job.taken_over is None else job.taken_over.seconds)
    end: RunEnd | None = None
    try:
        with scopes.work:
            try:
                end = await run.attempt()
            except Abandoned as exc:
                end = await _failed(exc, run)
    except LeaseLost as exc:  # another daemon goes on with the issue
        end = Failed(kind=ErrorKind.PORT_EXIT, message=str(exc), shortage=True)
    except Exception as exc:  # the edge: one run's bug is one failed run
        end = _crashed(exc, reporter)
    return RunReport(
        end=_clean(end, context.redact) or Stopped(completed=run.turns.completed),
        turns=run.turns.number,
        spent=run.turns.usage.spent,
        seconds=trio.current_time() - began,
        summary=run.summary,
        stage_result=run.stage_result,
    )


async def _failed(error: Abandoned, run: Run) -> Failed:
    """Return how a run failed that could not go on.

    Before its first turn it may be the workspace root that nothing can be written to, whatever
    the failure looks like: a disk is full, say. Then the host is in trouble, and this run would
    fail there whatever its issue is.
    """
    failed = blamed(error.failed, error, began=run.began)
    if (
        run.turns.number
        or failed != error.failed
        or failed.occupied
        or failed.kind not in _ROOT_MAY_BE_WHY
    ):
        return failed
    try:
        await run.context.workspaces.check()
    except WorkspaceError as exc:
        return blamed(_failed_by_root(run, exc), exc, began=False)
    return failed


def _failed_by_root(run: Run, error: WorkspaceError) -> Failed:
    is_local = run.context.transport.host == LOCAL
    return Failed(
        kind=ErrorKind.WORKSPACE_ERROR,
        message=f"nothing can be written to the workspace root: {error}",
        shortage=is_local,
        unreached=not is_local,
    )


def _clean(end: RunEnd | None, redact: Callable[[str], str]) -> RunEnd | None:
    """Return an end without secrets in its message, which is recorded and told to people."""
    return replace(end, message=redact(end.message)) if isinstance(end, Failed) else end


def _crashed(error: Exception, reporter: RunReporter) -> Failed:
    """Return how a run failed that an unexpected error ended."""
    shortage = shortage_behind(error)
    if shortage is not None:
        note(shortage)
        return Failed(kind=ErrorKind.PORT_EXIT, message=str(shortage), shortage=True)
    reporter.publish(facts.AdapterCrashed(where="worker", traceback=traceback.format_exc()))
    message = f"the run crashed: {type(error).__name__}; the log has the traceback"
    return Failed(kind=ErrorKind.INTERNAL_ERROR, message=message)
