"""The files that steer agents while one works: those of the base, where the settings say so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from sortie.model import ErrorKind, GitError, TransportError
from sortie.telemetry import facts
from sortie.worker.context import Assignment, RunContext, RunReporter, RunScopes
from sortie.worker.environment import RunEnvironment
from sortie.worker.outcome import delivery_needed
from sortie.workspaces import Workspace
from sortie.workspaces.agent_files import put_back, put_base_in_place
from sortie.workspaces.repository import Repository

_SHOWN = 50
"""Paths that are logged."""

_PUT_BACK_LIMIT = 10.0
"""Seconds for putting back where a run is stopped; the next one does what is left of it."""


@asynccontextmanager
async def base_in_place(
    job: Assignment,
    context: RunContext,
    reporter: RunReporter,
    workspace: Workspace,
    repository: Repository | None,
    scopes: RunScopes,
    *,
    stand_there: bool = False,
) -> AsyncIterator[None]:
    """Have the files of the base stand in a workspace for as long as the block takes, and of a run
    that is let go for longer. ``stand_there``: another daemon has put them there.

    Raises Abandoned where they cannot be put there. Where those of the branch cannot be put back,
    they are by whatever takes the workspace's work over.
    """
    if repository is None or context.settings.trust.agent_files != "base":
        yield
        return
    env, path, key = (
        RunEnvironment(job, context, workspace).for_git(),
        workspace.path,
        workspace.key,
    )
    paths: tuple[str, ...] = ()
    if not stand_there:
        with delivery_needed(ErrorKind.WORKSPACE_ERROR):
            paths = await put_base_in_place(repository, path, key, env)
    if paths:
        shown = tuple(paths[:_SHOWN])
        reporter.publish(facts.AgentFilesRestored(run_id=job.run_id, count=len(paths), paths=shown))
    try:
        yield
    finally:
        if (paths or stand_there) and not scopes.is_let_go:
            with trio.CancelScope(shield=True), trio.move_on_after(_PUT_BACK_LIMIT):
                try:
                    await put_back(repository, path, key, env)
                except (GitError, TransportError):
                    pass
