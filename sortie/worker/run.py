"""A run, phase by phase."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import trio
from msgspec.structs import replace

from sortie.agents import Session
from sortie.config.token_rates import TokenRates
from sortie.facts import Phase
from sortie.model import (
    LOCAL,
    ErrorKind,
    Failed,
    Finish,
    Finished,
    HostError,
    HostTrouble,
    KnownWorkspace,
    OccupiedError,
    RunEnd,
    RunSummary,
    TemplateError,
    TransportError,
    TurnOutcome,
    WorkspaceError,
)
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.worker.activity import RunActivity
from sortie.worker.context import (
    Assignment,
    RemoteRepository,
    RunContext,
    RunReporter,
    RunScopes,
)
from sortie.worker.delivery import RunDelivery, delivery_needed
from sortie.worker.environment import RunEnvironment
from sortie.worker.in_progress import InProgressMove
from sortie.worker.outcome import (
    Abandoned,
    after_turn,
    workspace_needed,
)
from sortie.worker.prompt import prompt_for
from sortie.worker.reread import Reread, reread
from sortie.worker.session import SessionLifetime
from sortie.worker.status_file import read_status
from sortie.worker.summary import summary_of, work_done
from sortie.worker.turn import take_turn
from sortie.worker.turn_events import TurnRequest
from sortie.worker.usage import RunUsage
from sortie.workspaces import GitWork, Workspace, workspace_key
from sortie.workspaces.git_values import agent_variables


class Run:
    """An attempt under way, and what it has come to so far."""

    def __init__(
        self, job: Assignment, context: RunContext, reporter: RunReporter, scopes: RunScopes
    ) -> None:
        self.job = job
        self.issue = job.issue
        self.context = context
        self.reporter = reporter
        self.scopes = scopes
        self.move = InProgressMove(job, context, reporter, scopes)
        self.turns = 0
        self.completed = False
        self.began = False
        self.activity: RunActivity | None = None
        self.git = GitWork()
        self.delivery: RunDelivery | None = None
        self.usage = RunUsage(TokenRates(context.settings.token_rates))

    def _enter(self, phase: Phase) -> None:
        self.reporter.publish(facts.RunPhaseChanged(run_id=self.job.run_id, phase=phase))

    @property
    def summary(self) -> RunSummary:
        """What the run has left, as far as it is known."""
        summary = summary_of(self.activity, self.git)
        done = None if self.delivery is None else self.delivery.delivery
        if self.delivery is None or done is None or done.pull_request is None:
            return summary
        url, opened = done.pull_request.url, self.delivery.opened
        return replace(summary, pull_request=url, opened=opened)

    @property
    def _is_plain(self) -> bool:
        """Whether nothing happens in a workspace before its first turn that a crash might leave
        half done: no hook runs, and no session goes on that knows what was in it."""
        hooks, remote = self.context.settings.hooks, self.context.remote
        found = (hooks.after_create, hooks.before_run, self.job.resume, remote)
        return found == (None, None, None, None)

    async def attempt(self) -> RunEnd:
        """Go through all phases; the end of the blocks undoes what was set up, in order."""
        self._enter(Phase.STARTING)
        self.issue = await self.move.make()
        async with self._workspace() as (workspace, environment):
            await self._hook("before_run", workspace, environment)
            self._enter(Phase.SESSION)
            if not self._is_plain:  # since it was made a hook may have put a link in its place
                with workspace_needed():
                    await self.context.workspaces.verify(workspace.path)
                    await self.context.workspaces.hide(workspace.path)
            # What is new, and what no hook has seen, holds no commit yet.
            is_empty = workspace.created and self._is_plain
            before = GitWork() if is_empty else await environment.git_head(workspace.path)
            end = await self._finish_delivery()
            if end is None or isinstance(end, str):
                lifetime = SessionLifetime(self.job, self.context, self.reporter, self.scopes)
                env, first = await self._agent_env(environment), end
                end = await lifetime.run(
                    workspace, env, lambda session: self._take_turns(session, workspace, first)
                )
        self.git = await work_done(workspace, environment, before, self.context, self.scopes)
        return end

    @asynccontextmanager
    async def _workspace(self) -> AsyncIterator[tuple[Workspace, RunEnvironment]]:
        """Have a directory for the issue, and run ``after_run`` when done with it."""
        self._enter(Phase.WORKSPACE)
        workspaces = self.context.workspaces
        try:
            workspace_key(self.job.issue.identifier)
        except WorkspaceError as exc:  # no retry can help: only another identifier
            raise Abandoned(ErrorKind.INVALID_WORKSPACE_CWD, str(exc)) from exc
        try:
            # A stop must not come between making a directory and telling of it: a directory
            # that the scheduler does not know is never removed.
            with self.scopes.shield() as shield, workspace_needed():
                prepare = workspaces.prepare_complete if self._is_plain else workspaces.prepare
                grace = self.context.settings.agent.stop_grace
                workspace = await prepare(self.job.issue.identifier, grace=grace)
                if not workspace.created:
                    await workspaces.clear_status(workspace.path)
            if shield.cancelled_caught:  # by a cut, which is a stop too
                await trio.lowlevel.checkpoint()
        except Abandoned as exc:
            if isinstance(exc.__cause__, OccupiedError):
                self._tell_of_reaped(exc.__cause__.ended)
            raise
        self._tell_of_reaped(workspace.reaped)
        await self._announce(workspace)
        environment = RunEnvironment(self.job, self.context, workspace)
        if self.context.remote is not None:
            await self._check_out(workspace, self.context.remote)
        if workspace.created and not self._is_plain:
            await self._after_create(workspace, environment)
        try:
            yield workspace, environment
        finally:
            self._enter(Phase.ENDING)
            # What kept the hook from running was told as a hook that failed.
            with self.scopes.shield(), suppress(TransportError):
                await self._run_hook("after_run", workspace, environment)

    async def _check_out(self, workspace: Workspace, remote: RemoteRepository) -> None:
        """Have the issue's branch in the workspace; a new one in which that fails is removed."""
        self.delivery = RunDelivery(self.job, self.context, remote, self.reporter, workspace)
        try:
            await self.delivery.check_out()
        except Abandoned:
            if workspace.created:
                with self.scopes.shield():
                    await self._discard(workspace)
            raise

    async def _agent_env(self, environment: RunEnvironment) -> dict[str, str]:
        """Return the agent's environment, with a credential for git only where it may push."""
        env, remote = environment.for_agent(), self.context.remote
        if remote is None:
            return env
        if not self.context.settings.repository.agent_pushes:
            if remote.url.scheme == "ssh":
                env.pop("SSH_AUTH_SOCK", None)
            return env
        with delivery_needed():
            return env | agent_variables(remote.url, await remote.access())

    async def _finish_delivery(self) -> RunEnd | str | None:
        """Go on with what an earlier run left half done; None where there is nothing of the kind,
        a prompt where the agent has to mend something first."""
        done = None if self.delivery is None else self.delivery.half_done
        if self.delivery is None or done is None:
            return None
        return await self._deliver(self.delivery, done)

    async def _deliver(self, delivery: RunDelivery, end: RunEnd) -> RunEnd | str:
        self._enter(Phase.DELIVERY)
        answer = None if self.activity is None else self.activity.answer
        return await delivery.deliver(end, self.issue, answer)

    def _tell_of_reaped(self, count: int) -> None:
        if count:
            where = LOCAL if self.context.transport.host == LOCAL else "host"
            self.reporter.publish(facts.OrphansReaped(where=where, count=count))

    async def _announce(self, workspace: Workspace) -> None:
        known = KnownWorkspace(
            issue_id=self.issue.id,
            identifier=self.job.issue.identifier,
            host=workspace.host,
            path=workspace.path,
        )
        made = ev.WorkspaceMade(self.job.run_id, known, workspace.created)
        if self._is_plain:
            self.reporter.tell(made)  # it is on disk with the first turn
        else:
            await self.reporter.commit(made)
        self.reporter.publish(
            facts.WorkspaceReady(
                run_id=self.job.run_id, path=workspace.path, created=workspace.created
            )
        )

    async def _after_create(self, workspace: Workspace, environment: RunEnvironment) -> None:
        """Finish a new directory; it counts as made only when the hook has succeeded."""
        try:
            await self._hook("after_create", workspace, environment)
        except Abandoned:
            with self.scopes.shield():
                await self._discard(workspace)
            raise
        with workspace_needed():
            await self.context.workspaces.complete(workspace)

    async def _discard(self, workspace: Workspace) -> None:
        error = None
        try:
            await self.context.workspaces.remove(self.job.issue.identifier)
        except (WorkspaceError, TransportError) as exc:
            error = str(exc)
        self.reporter.publish(
            facts.WorkspaceRemoved(
                issue_id=self.issue.id,
                issue_identifier=self.issue.identifier,
                path=workspace.path,
                error=error,
            )
        )

    async def _hook(self, name: str, workspace: Workspace, environment: RunEnvironment) -> None:
        """Run a hook whose failure ends the run."""
        self._enter(Phase.HOOK)
        try:
            problem = await self._run_hook(name, workspace, environment)
        except TransportError as exc:
            raise Abandoned(ErrorKind.PORT_EXIT, str(exc)) from exc
        if problem is not None:
            raise Abandoned(ErrorKind.HOOK_FAILED, problem)

    async def _run_hook(
        self, name: str, workspace: Workspace, environment: RunEnvironment
    ) -> str | None:
        """Run a hook, if there is one, and return what went wrong."""
        began = self.began
        self.began |= getattr(self.context.settings.hooks, name) is not None
        try:
            return await environment.run_hook(name, workspace, self.reporter.publish)
        except TransportError as exc:
            if not (isinstance(exc, HostError) and exc.trouble is HostTrouble.DROPPED):
                self.began = began
            raise

    async def _take_turns(
        self, session: Session, workspace: Workspace, prompt: str | None
    ) -> RunEnd:
        """Take turns until one ends the run, or there are no more; then deliver what was done.

        With a ``prompt`` the agent mends what kept its work from being delivered: turns for that
        come on top of those that the settings give.
        """
        self.activity = activity = RunActivity(workspace.path)
        last, number = self.context.settings.agent.max_turns, 0
        while True:
            number += 1
            last = max(last, number)
            end = await self._turn(session, workspace, number, activity, prompt)
            if end is None and (prompt is not None or number == last):
                mended = self.delivery is not None and prompt is not None
                end = Finished(finish=Finish.DONE if mended else Finish.TURNS_USED)
            prompt = None
            if end is None:
                continue
            told = end if self.delivery is None else await self._deliver(self.delivery, end)
            if not isinstance(told, str):
                return told
            prompt = told

    async def _turn(
        self,
        session: Session,
        workspace: Workspace,
        number: int,
        activity: RunActivity,
        prompt: str | None,
    ) -> RunEnd | None:
        """Take one turn and return how the run ends after it, or None where it goes on."""
        self._enter(Phase.TURN)
        try:
            if prompt is None:
                checkout = None if self.delivery is None else self.delivery.checkout
                prompt = await prompt_for(
                    self.job, self.issue, self.context, workspace, number, checkout
                )
        except TemplateError as exc:
            return Failed(kind=ErrorKind.TEMPLATE_ERROR, message=str(exc))
        with workspace_needed():
            await self.context.workspaces.verify(workspace.path)
        await self.reporter.commit(ev.TurnStarted(self.job.run_id, number))
        self.turns, began = number, self.began
        self.began, self.completed = True, False
        turn = TurnRequest(
            job=self.job,
            number=number,
            prompt=prompt,
            context=self.context,
            reporter=self.reporter,
            usage=self.usage,
            activity=activity,
        )
        end = await self.move.beside(self.issue, lambda: take_turn(turn, session))
        self.completed = end.result.outcome is TurnOutcome.COMPLETED
        status = await read_status(
            self.job.run_id, self.context, self.reporter, workspace, needed=self.completed
        )
        if status is None and not self.completed:
            return after_turn(end.result, None, read=None, error=end.error, began=began)
        # Also where a word ends the run: what the agent itself changed must not look like a
        # person's doing to the hold or the handoff that follows.
        self._enter(Phase.REREAD)
        read = await reread(self.issue, self.context.tracker)
        if isinstance(read, Reread):
            self.issue = read.issue
            self.reporter.tell(ev.IssueMoved(self.job.run_id, read.issue))
            if status is None and self.reporter.is_active(read.issue):
                return None
        return after_turn(end.result, status, read=read)
