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
from sortie.worker.context import Assignment, RunContext, RunReporter, RunScopes
from sortie.worker.outcome import Abandoned


async def move_to_in_progress(
    job: Assignment, context: RunContext, reporter: RunReporter, scopes: RunScopes
) -> Issue:
    """Move the issue to the in-progress state, if one is named, and return it as it is then.

    A tracker that refuses is told of, and the run goes on. Raises Abandoned where the host of the
    run cannot be reached.
    """
    issue, state = job.issue, context.settings.tracker.in_progress_state
    if state is None or same_state(state, issue.state):
        return issue
    await _reach_host(context)
    error, closed = None, False
    # A stop must not come between the move and the telling of it: it would look as if a
    # person had moved the issue.
    await trio.lowlevel.checkpoint()
    with scopes.shield() as shield:
        try:
            issue = await context.tracker.transition(issue, state)
        except TrackerError as exc:
            error, closed = str(exc), exc.kind is TrackerErrorKind.CLOSED
        else:
            reporter.tell(ev.IssueMoved(job.run_id, issue, True))
    if shield.cancelled_caught:
        error = "the daemon was told to leave at once"
    reporter.publish(
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


async def _reach_host(context: RunContext) -> None:
    """Make sure of a remote host before anybody is told that work begins."""
    if context.transport.host == LOCAL:
        return
    try:
        await context.workspaces.reach()
    except WorkspaceError as exc:
        raise Abandoned(ErrorKind.WORKSPACE_ERROR, str(exc)) from exc
