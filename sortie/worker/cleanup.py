"""Removing the workspace of an issue that is finished."""

from __future__ import annotations

import os
from typing import get_args
from uuid import NAMESPACE_URL, uuid5

from sortie.model import (
    GitError,
    Issue,
    KnownWorkspace,
    NotInRootError,
    RunId,
    TransportError,
    UnsavedWorkError,
    WorkspaceError,
)
from sortie.telemetry import Publish, facts
from sortie.worker.context import Assignment, RunContext
from sortie.worker.environment import RunEnvironment
from sortie.workspaces import Workspace, Workspaces, workspace_key
from sortie.workspaces.git_values import ClonePurpose
from sortie.workspaces.rescues import Rescues


def removal_cookie(known: KnownWorkspace) -> RunId:
    """Return what marks the processes of a ``before_remove``, which belongs to no run."""
    return RunId(str(uuid5(NAMESPACE_URL, f"sortie:{known.host}:{known.path}")))


async def require_saved(context: RunContext, issue: Issue, known: KnownWorkspace) -> None:
    """Raise UnsavedWorkError where a workspace holds work that is nowhere else, or where that is
    not known; WorkspaceError where its host cannot be asked."""
    removal = _Removal(context, issue, known)
    try:
        if await removal.is_due() and (found := await removal.environment.unsaved_work(known.path)):
            raise UnsavedWorkError(context.redact(found))
    except TransportError as exc:
        raise WorkspaceError(str(exc)) from exc


async def rescue_work(
    context: RunContext, issue: Issue, known: KnownWorkspace, publish: Publish
) -> None:
    """Keep in the mirror what of a workspace is nowhere else.

    Raises UnsavedWorkError where that cannot be done, and WorkspaceError where its host cannot be
    asked.
    """
    removal, remote = _Removal(context, issue, known), context.remote
    assert remote is not None
    try:
        if not await removal.is_due():
            return
        path, env = known.path, removal.environment.for_git()
        try:
            repository = remote.at(os.path.dirname(path))
            refs = await Rescues(repository).rescue(path, workspace_key(known.identifier), env)
        except GitError as exc:
            if found := await removal.environment.unsaved_work(path):
                raise UnsavedWorkError(context.redact(f"{found}; {exc}")) from exc
            return
    except TransportError as exc:
        raise WorkspaceError(str(exc)) from exc
    if refs:
        publish(facts.WorkRescued(issue_identifier=known.identifier, refs=refs))


async def remove_workspace(
    context: RunContext, issue: Issue, known: KnownWorkspace, publish: Publish
) -> None:
    """Run ``before_remove``, whose failure only is told, and remove the directory.

    Raises WorkspaceError or TransportError where something stays.
    """
    removal = _Removal(context, issue, known)
    if await removal.is_due():
        await removal.environment.run_hook("before_remove", removal.workspace, publish)
    if context.remote is not None:
        # A daemon that was killed may have left clones.
        repository = context.remote.at(os.path.dirname(known.path))
        for purpose in get_args(ClonePurpose):
            await repository.remove_clean_clone(removal.workspace.key, purpose)
    await removal.workspaces.remove(known.identifier)


class _Removal:
    """A workspace that is to be removed, and what runs in it meanwhile."""

    def __init__(self, context: RunContext, issue: Issue, known: KnownWorkspace) -> None:
        self.workspace = Workspace(
            path=known.path, key=workspace_key(known.identifier), created=False, host=known.host
        )
        # The root of the settings may be another by now: the directory was made below this one.
        self.workspaces = Workspaces(
            os.path.dirname(known.path), context.transport, context.workspaces.recognise
        )
        job = Assignment(run_id=removal_cookie(known), issue=issue, attempt=0, fetched_at=0.0)
        self.environment = RunEnvironment(job, context, self.workspace)

    async def is_due(self) -> bool:
        """Tell whether the directory is there, whole: one that is removed in part holds nothing."""
        try:
            await self.workspaces.verify(self.workspace.path)
        except NotInRootError:
            return False
        return await self.workspaces.is_complete(self.workspace.key)
