"""Moving an issue to the in-progress state, before anything else of its run."""

from __future__ import annotations

import trio

from sortie.model import (
    LOCAL,
    ErrorKind,
    Issue,
    TrackerError,
    TrackerErrorKind,
    WorkspaceError,
    same_state,
)
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.worker.context import Assignment, Reports, RunContext, Scopes
from sortie.worker.outcome import Abandoned


async def move_to_in_progress(
    job: Assignment, bench: RunContext, reports: Reports, scopes: Scopes
) -> Issue:
    """Move the issue to the in-progress state, if one is named, and return it as it is then.

    A tracker that refuses is told of, and the run goes on. Raises Abandoned where the host of the
    run cannot be reached.
    """
    issue, state = job.issue, bench.settings.tracker.in_progress_state
    if state is None or same_state(state, issue.state):
        return issue
    await _reach_host(bench)
    error, closed = None, False
    # A stop must not come between the move and the telling of it: it would look as if a
    # person had moved the issue.
    await trio.lowlevel.checkpoint()
    with scopes.shield() as shield:
        try:
            issue = await bench.tracker.transition(issue, state)
        except TrackerError as exc:
            error, closed = str(exc), exc.kind is TrackerErrorKind.CLOSED
        else:
            reports.tell(ev.IssueMoved(job.run_id, issue, True))
    if shield.cancelled_caught:
        error = "the daemon was told to leave at once"
    reports.publish(
        facts.TransitionCompleted(
            issue=issue,
            lifecycle="dispatch",
            state=state,
            result="error" if error else "success",
            error=error,
            closed=closed,
        )
    )
    return issue


async def _reach_host(bench: RunContext) -> None:
    """Make sure of a remote host before anybody is told that work begins."""
    if bench.transport.host == LOCAL:
        return
    try:
        await bench.workspaces.reach()
    except WorkspaceError as exc:
        raise Abandoned(ErrorKind.WORKSPACE_ERROR, str(exc)) from exc
