"""The agent's session of a run: entered within a bound, and left whatever happens."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.agents import McpServer, Session, SessionParams, no_trace
from sortie.model import AgentError, ErrorKind, RunEnd
from sortie.model.asked_permissions import AskedPermissions
from sortie.model.questions import Question
from sortie.model.traces import SESSION
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.worker.agent_values import checked_session_id
from sortie.worker.agent_word import WordRefused
from sortie.worker.context import Assignment, RunContext, RunReporter, RunScopes
from sortie.worker.outcome import Abandoned, port_error_kind, reset_time, sole_error
from sortie.worker.turn_programs import TurnPrograms
from sortie.workspaces import Workspace

SESSION_START_SLACK = 300.0
"""Seconds beyond ``agent.read_timeout_ms`` after which an agent whose session does not start is
given up: its adapter should have noticed long before, though a host may let it wait."""

SESSION_END_SLACK = 30.0
"""Seconds beyond the grace time after which an agent that does not end its session is given up."""

UseSession = Callable[[Session], Awaitable[RunEnd]]


class _Use:
    """The use of a session; neither ``end`` nor ``error`` is set where it was cancelled."""

    def __init__(self, use: UseSession) -> None:
        self._use = use
        self._scope = trio.CancelScope()
        self.begun = False
        self.end: RunEnd | None = None
        self.error: Exception | None = None

    async def by(self, session: Session) -> None:
        """Use a session; what that raises is kept."""
        self.begun = True
        with self._scope:
            try:
                self.end = await self._use(session)
            except Exception as exc:  # not passed on: a nursery of the adapter's would wrap it
                self.error = exc

    async def pass_cancellation_on(self) -> None:
        """Wait for a cancellation, and let it reach the use."""
        try:
            await trio.sleep_forever()
        finally:
            self._scope.cancel()


class SessionLifetime(Struct, frozen=True):
    """Has the session of a run.

    A session may hold cancel scopes and nurseries open, so that no scope of ours may end between
    its entering and its leaving: one encloses both, and has its deadline moved. While the session
    is in use it is shielded, and a cancellation from outside is passed on to the use alone: what
    an adapter runs beside the turns is there to end a turn politely.
    """

    job: Assignment
    context: RunContext
    reporter: RunReporter
    scopes: RunScopes
    ask: Callable[[Question], None] | None = None
    programs: TurnPrograms | None = None

    async def run(
        self,
        workspace: Workspace,
        env: Mapping[str, str],
        use: UseSession,
        server: McpServer | None = None,
    ) -> RunEnd:
        """Use a session in a workspace, which was verified; its agent has the ``server``.

        Raises Abandoned where there is none to be had, and what the use raises.
        """
        params = replace(self._params(workspace, env), mcp_server=server)
        done, bound = _Use(use), self.scopes.bound(params.read_timeout + SESSION_START_SLACK)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(done.pass_cancellation_on)
                with bound:
                    async with self.context.agent.session(params) as session:
                        bound.deadline, bound.shield = math.inf, True
                        self._tell_of(session)
                        await done.by(session)
                        bound.deadline = trio.current_time() + params.stop_grace + SESSION_END_SLACK
                nursery.cancel_scope.cancel()
        except Exception as exc:
            error = sole_error(exc)
            used = ErrorKind.PORT_EXIT if done.begun else ErrorKind.RESPONSE_ERROR
            kind = port_error_kind(error, used)
            if kind is None:
                raise error from error.__cause__
            if not done.begun:
                raise self._refused(kind, error) from error
            if done.error is None:
                done.error = Abandoned(kind, str(error))
                done.error.__cause__ = error
        await trio.lowlevel.checkpoint_if_cancelled()  # it was passed on
        if done.error is not None:
            raise done.error
        if done.end is None:
            message = "the agent's adapter started no session in time"
            late = AgentError(ErrorKind.RESPONSE_TIMEOUT, message, timed_out=True)
            raise self._refused(late.kind, late)
        return done.end

    def _params(self, workspace: Workspace, env: Mapping[str, str]) -> SessionParams:
        settings, trace = self.context.settings.agent, self.job.trace
        taken, outlives = self.job.taken_over, self.context.turns_outlive_daemon
        outlives &= self.programs is not None
        return SessionParams(
            run_id=self.job.run_id,
            workspace=workspace.path,
            transport=self.context.inside,
            env=env if trace is None else trace.variables(env, SESSION),
            read_timeout=settings.read_timeout,
            stop_grace=settings.stop_grace,
            resume_session_id=self.resumable(workspace),
            traceparent=no_trace if trace is None else trace.turn,
            permissions=self._permissions(),
            on_wait=self._tell_of_wait,
            start_turn=self.programs if outlives else None,
            adopted=taken.turn.memo if outlives and taken is not None else None,
        )

    def _tell_of_wait(self, seconds: float, reason: str) -> None:
        run_id = self.job.run_id
        self.reporter.publish(facts.SessionWaiting(run_id=run_id, seconds=seconds, reason=reason))

    def _permissions(self) -> AskedPermissions | None:
        """Return how permissions are asked of people, None where the settings do not let agents
        ask."""
        if self.ask is None or self.context.settings.questions is None:
            return None
        answered = self.job.answered
        once = None if answered is None else answered.granted_once
        denied = None if answered is None else answered.denied
        return AskedPermissions(self._ask_people, self.job.granted, once, denied)

    def _ask_people(self, question: Question) -> None:
        """Ask for a permission, unless the agent has asked something else in this turn."""
        assert self.ask is not None
        with suppress(WordRefused):
            self.ask(question)

    def resumable(self, workspace: Workspace) -> str | None:
        """Return the session to go on with, if it was this agent's, in this very directory."""
        session = self.job.resume
        if session is None or workspace.created or not self.context.resumes:
            return None
        here = (self.context.settings.agent.kind, workspace.path)
        return session.session_id if (session.agent, session.workspace) == here else None

    def _tell_of(self, session: Session) -> None:
        run_id, agent = self.job.run_id, self.context.settings.agent.kind
        self.reporter.publish(facts.SessionStarted(run_id=run_id, session_id=session.id or None))
        if session.id:
            self.reporter.tell(ev.AgentSessionKnown(run_id, agent, checked_session_id(session.id)))

    def _refused(self, kind: ErrorKind, error: Exception) -> Abandoned:
        """Tell that there is no session, and return what ends the run."""
        self.reporter.publish(
            facts.SessionRefused(
                run_id=self.job.run_id,
                error_kind=kind,
                error=str(error),
                timed_out=isinstance(error, AgentError) and error.timed_out,
            )
        )
        return Abandoned(kind, str(error), resets_at=reset_time(error))
