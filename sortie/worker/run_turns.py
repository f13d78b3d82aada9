"""The turns of a run, and what is delivered after them."""

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
    TemplateError,
    TurnOutcome,
)
from sortie.scheduler import events as ev
from sortie.scheduler.memory import TakenOver
from sortie.tools.channel import ToolChannel
from sortie.worker.activity import RunActivity
from sortie.worker.agent_files import base_in_place
from sortie.worker.agent_word import AgentWord
from sortie.worker.context import Assignment, RunContext, RunReporter, RunScopes
from sortie.worker.delivery import RunDelivery
from sortie.worker.in_progress import InProgressMove
from sortie.worker.outcome import after_turn, workspace_needed
from sortie.worker.prompt import turn_prompt
from sortie.worker.reread import Reread, reread
from sortie.worker.run_tools import RunProgress
from sortie.worker.status_file import read_status
from sortie.worker.turn import take_turn
from sortie.worker.turn_events import TurnRequest
from sortie.worker.turn_programs import TurnPrograms, turn_under_way
from sortie.worker.usage import RunUsage
from sortie.worker.workspace_lifetime import WorkspaceLifetime
from sortie.workspaces import GitWork, Workspace


class RunTurns:
    """Takes the turns of a run; what they have come to so far is in here.

    ``number`` is that of the last turn, ``completed`` whether it was a good one, and
    ``turn_ends_at`` when it ends at the latest, in trio's time. ``before`` is what was in the
    workspace when the run began, ``resumed`` the session that it should go on with.
    """

    def __init__(
        self,
        job: Assignment,
        context: RunContext,
        reporter: RunReporter,
        scopes: RunScopes,
        place: WorkspaceLifetime,
    ) -> None:
        self.job = job
        self.issue = job.issue
        self.context = context
        self.reporter = reporter
        self.scopes = scopes
        self.place = place
        self.move = InProgressMove(job, context, reporter, scopes)
        self.programs = TurnPrograms(job, context, reporter, scopes)
        before = NOTHING if job.taken_over is None else job.taken_over.turn.spent
        self.usage = RunUsage(TokenRates(context.settings.token_rates), before)
        self.word = AgentWord(asks=context.settings.questions is not None)
        self.before = GitWork()
        self.resumed: str | None = None
        self.activity: RunActivity | None = None
        self.delivery: RunDelivery | None = None
        self.tools: ToolChannel | None = None
        self.number = 0
        self.completed = False
        self.turn_ends_at = math.inf

    def _enter(self, phase: Phase) -> None:
        self.reporter.enter(self.job.run_id, phase)

    def progress(self) -> RunProgress:
        """Return how far the run is."""
        known = None if self.delivery is None else self.delivery.delivery
        return RunProgress(
            turn=self.number,
            turn_ends_at=self.turn_ends_at,
            spent=self.usage.spent,
            branch=None if known is None else known.branch,
            pull_request=None if known is None else known.pull_request,
        )

    async def finish_delivery(self) -> RunEnd | str | None:
        """Go on with what an earlier run left half done; None where there is nothing of the kind,
        a prompt where the agent has to mend something first."""
        done = None if self.delivery is None else self.delivery.half_done
        if self.delivery is None or done is None:
            return None
        return await self._deliver(self.delivery, done)

    async def _deliver(self, delivery: RunDelivery, end: RunEnd) -> RunEnd | str:
        self._enter(Phase.DELIVERY)
        return await delivery.deliver(end, self.issue)

    async def take(self, session: Session, workspace: Workspace, prompt: str | None) -> RunEnd:
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
        self.number, began = number, self.place.began
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
        self.number, self.programs.turn = known.number, known
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
