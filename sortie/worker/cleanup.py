"""Removing the workspace of an issue that is finished."""

from __future__ import annotations

import os
from uuid import NAMESPACE_URL, uuid5

from sortie.model import Issue, KnownWorkspace, NotInRootError, RunId
from sortie.telemetry import Publish
from sortie.worker.context import Assignment, RunContext
from sortie.worker.environment import RunEnvironment
from sortie.workspaces import Workspace, Workspaces, workspace_key


def removal_cookie(known: KnownWorkspace) -> RunId:
    """Return what marks the processes of a ``before_remove``, which belongs to no run."""
    return RunId(str(uuid5(NAMESPACE_URL, f"sortie:{known.host}:{known.path}")))


async def remove_workspace(
    context: RunContext, issue: Issue, known: KnownWorkspace, publish: Publish
) -> None:
    """Run ``before_remove``, whose failure only is told, and remove the directory.

    Raises WorkspaceError where something stays.
    """
    workspace = Workspace(
        path=known.path, key=workspace_key(known.identifier), created=False, host=known.host
    )
    # The root of the settings may be another by now: the directory was made below this one.
    workspaces = Workspaces(
        os.path.dirname(known.path), context.transport, context.workspaces.recognise
    )
    if await _is_there(workspaces, known.path):
        job = Assignment(run_id=removal_cookie(known), issue=issue, attempt=0, fetched_at=0.0)
        environment = RunEnvironment(job, context, workspace)
        await environment.run_hook("before_remove", workspace, publish)
    await workspaces.remove(known.identifier)


async def _is_there(workspaces: Workspaces, path: str) -> bool:
    try:
        await workspaces.verify(path)
    except NotInRootError:
        return False
    return True
