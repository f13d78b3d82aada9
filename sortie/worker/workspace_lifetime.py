"""The workspace of a run: had with its checkout and hooks, and left whatever happens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import trio

from sortie.facts import Phase
from sortie.model import (
    LOCAL,
    ErrorKind,
    HostError,
    HostTrouble,
    KnownWorkspace,
    OccupiedError,
    TransportError,
    WorkspaceError,
)
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.worker.context import Assignment, RunContext, RunReporter, RunScopes
from sortie.worker.environment import RunEnvironment
from sortie.worker.outcome import Abandoned, workspace_needed
from sortie.workspaces import Workspace, workspace_key

CheckOut = Callable[[Workspace], Awaitable[None]]
"""Has the issue's branch in a workspace. Raises Abandoned."""


class WorkspaceLifetime:
    """Has the workspace of a run.

    ``began`` tells whether anything has run on the run's host.
    """

    def __init__(
        self, job: Assignment, context: RunContext, reporter: RunReporter, scopes: RunScopes
    ) -> None:
        self._job = job
        self._context = context
        self._reporter = reporter
        self._scopes = scopes
        self.began = False

    @property
    def is_plain(self) -> bool:
        """Whether nothing happens in a workspace before its first turn that a crash might leave
        half done: no hook runs, and no session goes on that knows what was in it."""
        hooks, remote = self._context.settings.hooks, self._context.remote
        found = (hooks.after_create, hooks.before_run, self._job.resume, remote)
        return found == (None, None, None, None)

    @asynccontextmanager
    async def entered(
        self, check_out: CheckOut | None
    ) -> AsyncIterator[tuple[Workspace, RunEnvironment]]:
        """Have a directory for the issue, and run ``after_run`` when done with it."""
        job = self._job
        self._reporter.enter(job.run_id, Phase.WORKSPACE)
        try:
            workspace_key(job.issue.identifier)
        except WorkspaceError as exc:  # no retry can help: only another identifier
            raise Abandoned(ErrorKind.INVALID_WORKSPACE_CWD, str(exc)) from exc
        workspace = await self._prepared()
        self._tell_of_reaped(workspace.reaped)
        await self._announce(workspace)
        environment = RunEnvironment(job, self._context, workspace)
        if check_out is not None:
            await self._or_discard(workspace, check_out(workspace))
        if workspace.created and not self.is_plain:
            # A new directory counts as made only when the hook has succeeded.
            await self._or_discard(workspace, self.hook("after_create", workspace, environment))
            with workspace_needed():
                await self._context.workspaces.complete(workspace)
        try:
            yield workspace, environment
        finally:
            await self._after_run(workspace, environment)

    @asynccontextmanager
    async def gone_on_in(self, path: str) -> AsyncIterator[tuple[Workspace, RunEnvironment]]:
        """Have the directory in which another daemon has begun the run, as it is, and run
        ``after_run`` when done with it. Raises Abandoned."""
        job, self.began = self._job, True
        host, key = self._context.transport.host, workspace_key(job.issue.identifier)
        workspace = Workspace(path=path, key=key, created=False, host=host)
        with workspace_needed():
            await self._context.workspaces.verify(path)
        self._tell_ready(workspace)
        environment = RunEnvironment(job, self._context, workspace)
        try:
            yield workspace, environment
        finally:
            await self._after_run(workspace, environment)

    async def _after_run(self, workspace: Workspace, environment: RunEnvironment) -> None:
        if self._scopes.is_let_go:
            return
        self._reporter.enter(self._job.run_id, Phase.ENDING)
        # What kept the hook from running was told as a hook that failed.
        with self._scopes.shield(), suppress(TransportError):
            await self._run_hook("after_run", workspace, environment)

    async def hook(self, name: str, workspace: Workspace, environment: RunEnvironment) -> None:
        """Run a hook whose failure ends the run."""
        self._reporter.enter(self._job.run_id, Phase.HOOK)
        try:
            problem = await self._run_hook(name, workspace, environment)
        except TransportError as exc:
            raise Abandoned(ErrorKind.PORT_EXIT, str(exc)) from exc
        if problem is not None:
            raise Abandoned(ErrorKind.HOOK_FAILED, problem)

    async def _prepared(self) -> Workspace:
        workspaces = self._context.workspaces
        try:
            # A stop must not come between making a directory and telling of it: a directory
            # that the scheduler does not know is never removed.
            with self._scopes.shield() as shield, workspace_needed():
                prepare = workspaces.prepare_complete if self.is_plain else workspaces.prepare
                grace = self._context.settings.agent.stop_grace
                workspace = await prepare(self._job.issue.identifier, grace=grace)
                if not workspace.created:
                    await workspaces.clear_status(workspace.path)
            if shield.cancelled_caught:  # by a cut, which is a stop too
                await trio.lowlevel.checkpoint()
        except Abandoned as exc:
            if isinstance(exc.__cause__, OccupiedError):
                self._tell_of_reaped(exc.__cause__.ended)
            raise
        return workspace

    async def _or_discard(self, workspace: Workspace, step: Awaitable[None]) -> None:
        """Take a step towards a finished workspace; a new one in which it fails is removed."""
        try:
            await step
        except Abandoned:
            if workspace.created:
                with self._scopes.shield():
                    await self._discard(workspace)
            raise

    def _tell_of_reaped(self, count: int) -> None:
        if count:
            where = LOCAL if self._context.transport.host == LOCAL else "host"
            self._reporter.publish(facts.OrphansReaped(where=where, count=count))

    async def _announce(self, workspace: Workspace) -> None:
        job = self._job
        known = KnownWorkspace(
            issue_id=job.issue.id,
            identifier=job.issue.identifier,
            host=workspace.host,
            path=workspace.path,
            rule=self._context.settings.rule,
        )
        made = ev.WorkspaceMade(job.run_id, known, workspace.created)
        if self.is_plain:
            self._reporter.tell(made)  # it is on disk with the first turn
        else:
            await self._reporter.commit(made)
        self._tell_ready(workspace)

    def _tell_ready(self, workspace: Workspace) -> None:
        run_id, created = self._job.run_id, workspace.created
        self._reporter.publish(
            facts.WorkspaceReady(run_id=run_id, path=workspace.path, created=created)
        )

    async def _discard(self, workspace: Workspace) -> None:
        issue, error = self._job.issue, None
        try:
            await self._context.workspaces.remove(issue.identifier)
        except (WorkspaceError, TransportError) as exc:
            error = str(exc)
        self._reporter.publish(
            facts.WorkspaceRemoved(
                issue_id=issue.id,
                issue_identifier=issue.identifier,
                path=workspace.path,
                error=error,
            )
        )

    async def _run_hook(
        self, name: str, workspace: Workspace, environment: RunEnvironment
    ) -> str | None:
        """Run a hook, if there is one, and return what went wrong."""
        began = self.began
        self.began |= getattr(self._context.settings.hooks, name) is not None
        try:
            return await environment.run_hook(name, workspace, self._reporter.publish)
        except TransportError as exc:
            if not (isinstance(exc, HostError) and exc.trouble is HostTrouble.DROPPED):
                self.began = began
            raise
