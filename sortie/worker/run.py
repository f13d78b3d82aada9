"""A run, phase by phase."""

from __future__ import annotations

import math

import trio
from msgspec.structs import replace

from sortie.agents import Session
from sortie.config.token_rates import TokenRates
from sortie.facts import Phase
from sortie.model import (
    NOTHING,
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
from sortie.scheduler.memory import TakenOver
from sortie.tools.channel import ToolChannel, new_token
from sortie.worker.activity import RunActivity
from sortie.worker.agent_files import base_in_place
from sortie.worker.agent_word import AgentWord
from sortie.worker.context import (
    Assignment,
    RemoteRepository,
    RunContext,
    RunReporter,
    RunScopes,
)
from sortie.worker.delivery import RunDelivery
from sortie.worker.environment import RunEnvironment, agent_environment
from sortie.worker.in_progress import InProgressMove
from sortie.worker.outcome import (
    Abandoned,
    after_turn,
    workspace_needed,
)
from sortie.worker.prompt import turn_prompt
from sortie.worker.reread import Reread, reread
from sortie.worker.review_conversation import ReviewTools
from sortie.worker.run_tools import AgentTools, RunProgress
from sortie.worker.self_review import reviewer_of
from sortie.worker.session import SessionLifetime
from sortie.worker.stage_result import clear_stage_result, stage_result
from sortie.worker.status_file import read_status
from sortie.worker.summary import summary_of, work_done
from sortie.worker.tooling import tools_for, without_token
from sortie.worker.turn import take_turn
from sortie.worker.turn_events import TurnRequest
from sortie.worker.turn_programs import TurnPrograms, turn_under_way
from sortie.worker.usage import RunUsage
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
        taken = job.taken_over
        before = NOTHING if taken is None else taken.turn.spent
        self.usage = RunUsage(TokenRates(context.settings.token_rates), before)
        self.programs = TurnPrograms(job, context, reporter, scopes)
        self.before = GitWork()
        self.resumed: str | None = None
        self.word = AgentWord(asks=context.settings.questions is not None)
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
        done = None if self.delivery is None else self.delivery.delivery
        return summary_of(self.activity, self.git, done)

    async def attempt(self) -> RunEnd:
        """Go through all phases; the end of the blocks undoes what was set up, in order."""
        if self.job.taken_over is not None:
            return await self._go_on(self.job.taken_over)
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
            self.before = GitWork() if is_empty else await environment.git_head(workspace.path)
            async with within_wall(self.job, self.context, self.reporter, workspace):
                end = await self._finish_delivery()
                if end is None or isinstance(end, str):
                    end = await self._in_session(workspace, environment, end)
        return await self._ended(end, workspace, environment)

    async def _go_on(self, taken: TakenOver) -> RunEnd:
        """Go on in the turn in which another daemon has left the run; nothing is set up anew."""
        turn, settings = taken.turn, self.context.settings.agent
        self.before = GitWork(head=turn.head, error=turn.head_error)
        try:
            if (turn.agent, turn.command) != (settings.kind, self.context.agent_command):
                raise Abandoned(ErrorKind.PORT_EXIT, "the settings name another agent by now")
            async with self.place.gone_on_in(taken.workspace) as (workspace, environment):
                if self.context.remote is not None and turn.delivery is not None:
                    self.delivery = self._delivery_in(workspace, self.context.remote)
                    self.delivery.go_on(turn.delivery)
                try:
                    end = await self._in_session(workspace, environment, None)
                finally:  # before after_run
                    await self.programs.end_unadopted()
        finally:
            await self.programs.end_unadopted()
        return await self._ended(end, workspace, environment)

    async def _in_session(
        self, workspace: Workspace, environment: RunEnvironment, prompt: str | None
    ) -> RunEnd:
        lifetime = SessionLifetime(
            self.job, self.context, self.reporter, self.scopes, self.word.ask, self.programs
        )
        self.resumed = lifetime.resumable(workspace)
        env = await agent_environment(environment, self.context)
        tools = AgentTools(self.job, self.context, self.reporter, self.word, self._progress)
        async with tools_for(
            self.job, self.context, self.reporter, workspace, env, tools, self.token
        ) as self.tools:
            end = await lifetime.run(
                workspace,
                env,
                lambda session: self._take_turns(session, workspace, prompt),
                None if self.tools is None else self.tools.server,
            )
        self.stage_result = await stage_result(self.context, workspace)
        return end

    async def _ended(
        self, end: RunEnd, workspace: Workspace, environment: RunEnvironment
    ) -> RunEnd:
        self.git = await work_done(workspace, environment, self.before, self.context, self.scopes)
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
        assert self.context.remote is not None
        self.delivery = self._delivery_in(workspace, self.context.remote)
        await self.delivery.check_out()

    def _delivery_in(self, workspace: Workspace, remote: RemoteRepository) -> RunDelivery:
        tools = ReviewTools(self.job, self.context, self.reporter, self.scopes, self.usage)
        reviewer = reviewer_of(tools, remote)
        return RunDelivery(self.job, self.context, remote, self.reporter, workspace, reviewer)

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
        number, taken = 0, self.job.taken_over
        if taken is not None:
            number = taken.turn.number - 1
            activity.begin_with(taken.turn.activity, taken.turn.answer)
        while True:
            number += 1
            if taken is not None:
                end = await self._taken_turn(session, workspace, taken, activity)
            else:
                end = await self._turn(session, workspace, number, activity, prompt)
            prompt = taken = None
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
        mends = prompt is not None
        try:
            if prompt is None:
                checkout = None if self.delivery is None else self.delivery.checkout
                remembered = self.resumed is not None and session.id == self.resumed
                given = (workspace, number, checkout)
                prompt = await turn_prompt(
                    self.job, self.issue, self.context, *given, remembered=remembered
                )
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
        turn = self._request(number, prompt, activity)
        known = None if self.delivery is None else self.delivery.under_way
        self.programs.turn = turn_under_way(turn, self.issue, self.before, known, mends=mends)
        return await self._taken(turn, session, workspace, mends=mends, began=began)

    async def _taken_turn(
        self, session: Session, workspace: Workspace, taken: TakenOver, activity: RunActivity
    ) -> RunEnd | None:
        """Go on with the turn that another daemon has begun, as ``_turn`` takes one."""
        self._enter(Phase.TURN)
        known = taken.turn
        self.turns, self.programs.turn = known.number, known
        turn = replace(self._request(known.number, "", activity), taken_over=taken.turn_seconds)
        return await self._taken(turn, session, workspace, mends=known.mends, began=True)

    def _request(self, number: int, prompt: str, activity: RunActivity) -> TurnRequest:
        return TurnRequest(
            job=self.job,
            number=number,
            prompt=prompt,
            context=self.context,
            reporter=self.reporter,
            usage=self.usage,
            activity=activity,
            is_let_go=lambda: self.scopes.is_let_go,
        )

    async def _taken(
        self, turn: TurnRequest, session: Session, workspace: Workspace, *, mends: bool, began: bool
    ) -> RunEnd | None:
        """See a turn to its end and return how the run ends after it, or None where it goes on."""
        activity, planned = turn.activity, None
        if mends:
            planned = Finished(finish=Finish.DONE)
        elif turn.number == self.context.settings.agent.max_turns:
            planned = Finished(finish=Finish.TURNS_USED)
        repository = None if self.delivery is None else self.delivery.repository
        async with base_in_place(
            self.job,
            self.context,
            self.reporter,
            workspace,
            repository,
            self.scopes,
            stand_there=turn.taken_over is not None,
        ):
            end = await self.move.beside(self.issue, lambda: take_turn(turn, session))
        await self.programs.turn_ended()
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
