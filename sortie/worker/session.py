"""The agent's session of a run: started within a bound, and ended whatever happens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

from sortie.agents import Session, SessionParams
from sortie.model import AgentError, ErrorKind, NotInRootError, WorkspaceError
from sortie.telemetry import facts
from sortie.worker.context import Assignment, Reports, RunContext, Scopes
from sortie.worker.outcome import Abandoned
from sortie.workspaces import Workspace

SESSION_PATIENCE = 300.0
"""Seconds beyond ``agent.read_timeout_ms`` after which an agent whose session does not start is
given up: its adapter should have noticed long before, though a host may let it wait."""

SESSION_SLACK = 30.0
"""Seconds beyond the grace time after which an agent that does not end its session is given up."""


@dataclass(frozen=True, slots=True)
class SessionDesk:
    """Opens the session of a run."""

    job: Assignment
    bench: RunContext
    reports: Reports
    scopes: Scopes

    @asynccontextmanager
    async def session(self, workspace: Workspace, env: Mapping[str, str]) -> AsyncIterator[Session]:
        """Have a session in a workspace. Raises Abandoned where there is none to be had."""
        settings = self.bench.settings.agent
        params = SessionParams(
            run_id=self.job.run_id,
            workspace=workspace.path,
            transport=self.bench.transport,
            env=env,
            read_timeout=settings.read_timeout,
            stop_grace=settings.stop_grace,
        )
        session = await self._start(params)
        self.reports.publish(
            facts.SessionStarted(run_id=self.job.run_id, session_id=session.id or None)
        )
        try:
            yield session
        finally:
            with self.scopes.shield() as bound:
                bound.deadline = trio.current_time() + params.stop_grace + SESSION_SLACK
                await self.bench.agent.stop_session(session)

    async def _start(self, params: SessionParams) -> Session:
        try:
            await self.bench.workspaces.verify(params.workspace)
            with trio.fail_after(params.read_timeout + SESSION_PATIENCE):
                return await self.bench.agent.start_session(params)
        except NotInRootError as exc:
            raise Abandoned(ErrorKind.INVALID_WORKSPACE_CWD, str(exc)) from exc
        except WorkspaceError as exc:
            raise Abandoned(ErrorKind.WORKSPACE_ERROR, str(exc)) from exc
        except trio.TooSlowError as exc:
            message = "the agent's adapter started no session in time"
            raise self._refused(
                AgentError(ErrorKind.RESPONSE_TIMEOUT, message, timed_out=True)
            ) from exc
        except AgentError as exc:
            raise self._refused(exc) from exc

    def _refused(self, error: AgentError) -> Abandoned:
        """Tell that there is no session, and return what ends the run."""
        self.reports.publish(
            facts.SessionRefused(
                run_id=self.job.run_id,
                error_kind=error.kind,
                error=str(error),
                timed_out=error.timed_out,
            )
        )
        return Abandoned(error.kind, str(error))
