"""A run, phase by phase."""

from __future__ import annotations

import math

import trio
from msgspec.structs import replace

from sortie.agents import Session
from sortie.config.token_rates import TokenRates
from sortie.facts import Phase
from sortie.model import (
    ErrorKind,
    Failed,
    Finish,
    Finished,
    RunEnd,
    RunSummary,
    TemplateError,
    TurnOutcome,
)
from sortie.scheduler import events as ev
from sortie.tools.channel import ToolChannel, new_token
from sortie.worker.activity import RunActivity
from sortie.worker.agent_files import base_in_place
from sortie.worker.agent_word import AgentWord
from sortie.worker.answer import told_answer
from sortie.worker.context import (
    Assignment,
    RunContext,
    RunReporter,
    RunScopes,
)
from sortie.worker.delivery import RunDelivery
from sortie.worker.environment import RunEnvironment
from sortie.worker.in_progress import InProgressMove
from sortie.worker.outcome import (
    after_turn,
    delivery_needed,
    workspace_needed,
)
from sortie.worker.prompt import prompt_for
from sortie.worker.reaction import happened
from sortie.worker.reread import Reread, reread
from sortie.worker.review_conversation import ReviewTools
from sortie.worker.run_tools import AgentTools, RunProgress
from sortie.worker.self_review import SelfReviewer
from sortie.worker.session import SessionLifetime
from sortie.worker.stage_result import clear_stage_result, stage_result
from sortie.worker.status_file import read_status
from sortie.worker.summary import summary_of, work_done
from sortie.worker.tooling import tools_for, without_token
from sortie.worker.turn import take_turn
from sortie.worker.turn_events import TurnRequest
from sortie.worker.usage import RunUsage
from sortie.worker.wall import within_wall
from sortie.worker.workspace_lifetime import WorkspaceLifetime
from sortie.workflow.fences import Fence
from sortie.workspaces import GitWork, Workspace
from sortie.workspaces.git_values import agent_variables


class Run:
    """An attempt under way, and what it has come to so far."""

    def __init__(
        self, job: Assignment, context: RunContext, reporter: RunReporter, scopes: RunScopes
    ) -> None:
        self.token = new_token() if context.tools else ""
        context = without_token(context, self.token)
        self.job = job
        self.issue = job.issue
        self.context = context
        self.reporter = reporter
        self.scopes = scopes
        self.move = InProgressMove(job, context, reporter, scopes)
        self.turns = 0
        self.completed = False
        self.place = WorkspaceLifetime(job, context, reporter, scopes)
        self.activity: RunActivity | None = None
        self.git = GitWork()
        self.delivery: RunDelivery | None = None
        self.stage_result: str | None = None
        self.resumed: str | None = None
        self.word = AgentWord(asks=context.settings.questions is not None)
        self.usage = RunUsage(TokenRates(context.settings.token_rates))
        self.tools: ToolChannel | None = None
        self.turn_ends_at = math.inf

    def _enter(self, phase: Phase) -> None:
        self.reporter.enter(self.job.run_id, phase)

    @property
    def began(self) -> bool:
        """Whether anything has run on the run's host."""
        return self.place.began

    @property
    def summary(self) -> RunSummary:
        """What the run has left, as far as it is known."""
        summary = summary_of(self.activity, self.git)
        done = None if self.delivery is None else self.delivery.delivery
        if done is None:
            return summary
        summary = replace(summary, answer=summary.answer or done.answer)
        if done.pull_request is None:
            return summary
        return replace(summary, pull_request=done.pull_request.url, opened=done.opened)

    async def attempt(self) -> RunEnd:
        """Go through all phases; the end of the blocks undoes what was set up, in order."""
        self._enter(Phase.STARTING)
        self.issue = await self.move.make()
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
            before = GitWork() if is_empty else await environment.git_head(workspace.path)
            async with within_wall(self.job, self.context, self.reporter, workspace):
                end = await self._finish_delivery()
                if end is None or isinstance(end, str):
                    lifetime = SessionLifetime(
                        self.job, self.context, self.reporter, self.scopes, self.word.ask
                    )
                    self.resumed = lifetime.resumable(workspace)
                    env, first = await self._agent_env(environment), end
                    tools = AgentTools(
                        self.job, self.context, self.reporter, self.word, self._progress
                    )
                    async with tools_for(
                        self.job, self.context, self.reporter, workspace, env, tools, self.token
                    ) as self.tools:
                        end = await lifetime.run(
                            workspace,
                            env,
                            lambda session: self._take_turns(session, workspace, first),
                            None if self.tools is None else self.tools.server,
                        )
                    self.stage_result = await stage_result(self.context, workspace)
        self.git = await work_done(workspace, environment, before, self.context, self.scopes)
        return end

    def _progress(self) -> RunProgress:
        known = None if self.delivery is None else self.delivery.delivery
        return RunProgress(
            turn=self.turns,
            turn_ends_at=self.turn_ends_at,
            spent=self.usage.spent,
            branch=None if known is None else known.branch,
            pull_request=None if known is None else known.pull_request,
        )

    async def _check_out(self, workspace: Workspace) -> None:
        remote, reviewer = self.context.remote, None
        assert remote is not None
        judge, wanted = self.context.reviewer, self.context.settings.self_review
        if judge is not None and wanted is not None:
            tools = ReviewTools(self.job, self.context, self.reporter, self.scopes, self.usage)
            reviewer = SelfReviewer(tools, remote, judge, wanted)
        self.delivery = RunDelivery(
            self.job, self.context, remote, self.reporter, workspace, reviewer
        )
        await self.delivery.check_out()

    async def _agent_env(self, environment: RunEnvironment) -> dict[str, str]:
        """Return the agent's environment, with what git needs to push only where it may."""
        env, remote = environment.for_agent(), self.context.remote
        if remote is None:
            return env
        if not self.context.settings.repository.agent_pushes:
            if remote.url.scheme == "ssh":
                env.pop("SSH_AUTH_SOCK", None)
            return env
        with delivery_needed():
            return env | agent_variables(remote.url, await remote.access(), env)

    async def _finish_delivery(self) -> RunEnd | str | None:
        """Go on with what an earlier run left half done; None where there is nothing of the kind,
        a prompt where the agent has to mend something first."""
        done = None if self.delivery is None else self.delivery.half_done
        if self.delivery is None or done is None:
            return None
        return await self._deliver(self.delivery, done)

    async def _deliver(self, delivery: RunDelivery, end: RunEnd) -> RunEnd | str:
        self._enter(Phase.DELIVERY)
        return await delivery.deliver(end, self.issue)

    async def _take_turns(
        self, session: Session, workspace: Workspace, prompt: str | None
    ) -> RunEnd:
        """Take turns until one ends the run, or there are no more; then deliver what was done.

        With a ``prompt`` the agent mends what kept its work from being delivered: turns for that
        come on top of those that the settings give.
        """
        self.activity = activity = RunActivity(workspace.path)
        number = 0
        while True:
            number += 1
            end = await self._turn(session, workspace, number, activity, prompt)
            prompt = None
            if end is None:
                continue
            if self.delivery is None:
                return end
            await self.delivery.note_end(end, activity.answer)
            told = await self._deliver(self.delivery, end)
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
        planned = None if prompt is None else Finished(finish=Finish.DONE)
        if prompt is None and number == self.context.settings.agent.max_turns:
            planned = Finished(finish=Finish.TURNS_USED)
        try:
            if prompt is None:
                checkout = None if self.delivery is None else self.delivery.checkout
                fence = Fence() if self.context.settings.trust.fences else None
                news, told = None, None
                if number == 1:
                    news = await happened(self.job, self.context, workspace, fence)
                    goes_on = self.resumed is not None and session.id == self.resumed
                    told = told_answer(self.job.answered, fence, remembered=goes_on)
                given = (workspace, number, checkout, news, fence, told)
                prompt = await prompt_for(self.job, self.issue, self.context, *given)
        except TemplateError as exc:
            return Failed(kind=ErrorKind.TEMPLATE_ERROR, message=str(exc))
        with workspace_needed():
            await self.context.workspaces.verify(workspace.path)
        await self.reporter.commit(ev.TurnStarted(self.job.run_id, number))
        if self.tools is not None:
            await self.tools.renew()
        self.turns, began = number, self.began
        self.turn_ends_at = trio.current_time() + self.context.settings.agent.turn_timeout
        self.place.began, self.completed = True, False
        turn = TurnRequest(
            job=self.job,
            number=number,
            prompt=prompt,
            context=self.context,
            reporter=self.reporter,
            usage=self.usage,
            activity=activity,
        )
        repository = None if self.delivery is None else self.delivery.repository
        async with base_in_place(self.job, self.context, self.reporter, workspace, repository):
            end = await self.move.beside(self.issue, lambda: take_turn(turn, session))
        self.completed = end.result.outcome is TurnOutcome.COMPLETED
        written = await read_status(
            self.job.run_id, self.context, self.reporter, workspace, needed=self.completed
        )
        status = self.word.heard(written, self.context.redact)
        if status is None and not self.completed:
            return after_turn(end.result, None, read=None, error=end.error, began=began)
        expected = planned if status is None else after_turn(end.result, status, read=None)
        if self.delivery is not None:
            # Before a re-read, which may take a minute.
            await self.delivery.note_end(expected, activity.answer)
        # Also where a word ends the run: what the agent itself changed must not look like a
        # person's doing to the hold or the handoff that follows.
        self._enter(Phase.REREAD)
        read = await reread(self.issue, self.context.tracker)
        if isinstance(read, Reread):
            self.issue = read.issue
            self.reporter.tell(ev.IssueMoved(self.job.run_id, read.issue))
            if status is None and self.reporter.is_active(read.issue):
                return planned
        ended = after_turn(end.result, status, read=read)
        if isinstance(ended, Finished) and ended.question is not None:
            return replace(ended, comments_before=len(self.issue.comments))
        return ended
