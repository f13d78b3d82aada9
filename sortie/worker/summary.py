"""What a run leaves: how the git tree in its workspace stands, and what the agent said last."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.model import Delivery, RunSummary, WorkspaceError
from sortie.worker.activity import RunActivity
from sortie.worker.context import RunContext, RunScopes
from sortie.worker.environment import RunEnvironment
from sortie.workspaces import GitWork, Workspace


async def work_done(
    workspace: Workspace,
    environment: RunEnvironment,
    before: GitWork,
    context: RunContext,
    scopes: RunScopes,
) -> GitWork:
    """Return what was done in the workspace's git tree since ``before``; a stop that comes
    meanwhile must not undo how the run has ended."""
    if before.error is not None:
        return before  # it is not known which commits are the run's
    with scopes.shield():
        try:
            await context.workspaces.verify(workspace.path)
            return await environment.work_since(workspace.path, before.head)
        except WorkspaceError as exc:
            return GitWork(error=str(exc))
    return GitWork()  # a cut is in a hurry


def summary_of(
    activity: RunActivity | None, git: GitWork, delivery: Delivery | None = None
) -> RunSummary:
    """Return what a run has left, as far as it is known."""
    summary = RunSummary(
        answer=None if activity is None else activity.answer,
        branch=git.branch,
        head_commit=git.head,
        commits=git.commits,
        files_changed=git.files,
        uncommitted=git.uncommitted,
        subjects=git.subjects,
        git_error=git.error,
    )
    if delivery is None:
        return summary
    summary = replace(summary, answer=summary.answer or delivery.answer)
    if delivery.pull_request is None:
        return summary
    return replace(summary, pull_request=delivery.pull_request.url, opened=delivery.opened)
