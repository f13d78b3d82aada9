"""A run, phase by phase."""

from __future__ import annotations

from sortie.facts import Phase
from sortie.model import ErrorKind, RunEnd, RunSummary
from sortie.scheduler.memory import TakenOver
from sortie.tools.channel import new_token
from sortie.worker.context import Assignment, RemoteRepository, RunContext, RunReporter, RunScopes
from sortie.worker.delivery import RunDelivery
from sortie.worker.environment import RunEnvironment, agent_environment
from sortie.worker.outcome import Abandoned, workspace_needed
from sortie.worker.review_conversation import ReviewTools
from sortie.worker.run_tools import AgentTools
from sortie.worker.run_turns import RunTurns
from sortie.worker.self_review import reviewer_of
from sortie.worker.session import SessionLifetime
from sortie.worker.stage_result import clear_stage_result, stage_result
from sortie.worker.summary import summary_of, work_done
from sortie.worker.tooling import tools_for, without_token
from sortie.worker.wall import within_wall
from sortie.worker.workspace_lifetime import WorkspaceLifetime
from sortie.workspaces import GitWork, Workspace


class Run:
    """An attempt under way, and what it has come to so far."""

    def __init__(
        self, job: Assignment, context: RunContext, reporter: RunReporter, scopes: RunScopes
    ) -> None:
        self.token = new_token() if context.tools else ""
        context = without_token(context, self.token)
        self.job = job
        self.context = context
        self.reporter = reporter
        self.scopes = scopes
        self.place = WorkspaceLifetime(job, context, reporter, scopes)
        self.turns = RunTurns(job, context, reporter, scopes, self.place)
        self.git = GitWork()
        self.stage_result: str | None = None

    def _enter(self, phase: Phase) -> None:
        self.reporter.enter(self.job.run_id, phase)

    @property
    def began(self) -> bool:
        """Whether anything has run on the run's host."""
        return self.place.began

    @property
    def summary(self) -> RunSummary:
        """What the run has left, as far as it is known."""
        delivery = self.turns.delivery
        done = None if delivery is None else delivery.delivery
        return summary_of(self.turns.activity, self.git, done)

    async def attempt(self) -> RunEnd:
        """Go through all phases; the end of the blocks undoes what was set up, in order."""
        if self.job.taken_over is not None:
            return await self._go_on(self.job.taken_over)
        self._enter(Phase.STARTING)
        turns = self.turns
        turns.issue = await turns.move.make()
        check_out = None if self.context.remote is None else self._check_out
        async with self.place.entered(check_out) as (workspace, environment):
            await clear_stage_result(self.context, workspace)
            await self.place.hook("before_run", workspace, environment)
            self._enter(Phase.SESSION)
            if not self.place.is_plain:  # since it was made a hook may have put a link in its place
                with workspace_needed():
                    await self.context.workspaces.verify(workspace.path)
                    await self.context.workspaces.hide(workspace.path)
            # What is new, and what no hook has seen, holds no commit yet.
            is_empty = workspace.created and self.place.is_plain
            turns.before = GitWork() if is_empty else await environment.git_head(workspace.path)
            async with within_wall(self.job, self.context, self.reporter, workspace):
                end = await turns.finish_delivery()
                if end is None or isinstance(end, str):
                    end = await self._in_session(workspace, environment, end)
        return await self._ended(end, workspace, environment)

    async def _go_on(self, taken: TakenOver) -> RunEnd:
        """Go on in the turn in which another daemon has left the run; nothing is set up anew."""
        turn, settings = taken.turn, self.context.settings.agent
        self.turns.before = GitWork(head=turn.head, error=turn.head_error)
        try:
            if (turn.agent, turn.command) != (settings.kind, self.context.agent_command):
                raise Abandoned(ErrorKind.PORT_EXIT, "the settings name another agent by now")
            async with self.place.gone_on_in(taken.workspace) as (workspace, environment):
                if self.context.remote is not None and turn.delivery is not None:
                    self.turns.delivery = self._delivery_in(workspace, self.context.remote)
                    self.turns.delivery.go_on(turn.delivery)
                try:
                    end = await self._in_session(workspace, environment, None)
                finally:  # before after_run
                    await self.turns.programs.end_unadopted()
        finally:
            await self.turns.programs.end_unadopted()
        return await self._ended(end, workspace, environment)

    async def _in_session(
        self, workspace: Workspace, environment: RunEnvironment, prompt: str | None
    ) -> RunEnd:
        job, context, reporter, turns = self.job, self.context, self.reporter, self.turns
        lifetime = SessionLifetime(
            job, context, reporter, self.scopes, turns.word.ask, turns.programs
        )
        turns.resumed = lifetime.resumable(workspace)
        env = await agent_environment(environment, context)
        tools = AgentTools(job, context, reporter, turns.word, turns.progress)
        async with tools_for(
            job, context, reporter, workspace, env, tools, self.token
        ) as turns.tools:
            end = await lifetime.run(
                workspace,
                env,
                lambda session: turns.take(session, workspace, prompt),
                None if turns.tools is None else turns.tools.server,
            )
        self.stage_result = await stage_result(self.context, workspace)
        return end

    async def _ended(
        self, end: RunEnd, workspace: Workspace, environment: RunEnvironment
    ) -> RunEnd:
        before = self.turns.before
        self.git = await work_done(workspace, environment, before, self.context, self.scopes)
        return end

    async def _check_out(self, workspace: Workspace) -> None:
        assert self.context.remote is not None
        self.turns.delivery = self._delivery_in(workspace, self.context.remote)
        await self.turns.delivery.check_out()

    def _delivery_in(self, workspace: Workspace, remote: RemoteRepository) -> RunDelivery:
        tools = ReviewTools(self.job, self.context, self.reporter, self.scopes, self.turns.usage)
        reviewer = reviewer_of(tools, remote)
        return RunDelivery(self.job, self.context, remote, self.reporter, workspace, reviewer)
