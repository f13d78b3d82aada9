"""The adapter for agents that speak the Agent Client Protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial

from sortie.agents import SessionParams
from sortie.agents.acp.asking import asking_variables
from sortie.agents.acp.conversations import Conversations
from sortie.agents.acp.mcp_servers import server_arguments
from sortie.agents.acp.opening import Opening
from sortie.agents.acp.process import AgentProcess
from sortie.agents.acp.session import AcpSession
from sortie.agents.acp.settings import DEFAULT_COMMAND, AcpSettings
from sortie.agents.launch import AgentLaunch, check_workspace, resolve_command
from sortie.agents.protocol_session import started
from sortie.model.secrets import credentials_of, redactor
from sortie.transports import Command, Stdin

UNATTENDED: Mapping[str, str] = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "GEMINI_CLI_NO_RELAUNCH": "true",
    "COPILOT_AUTO_UPDATE": "false",
    "DISABLE_AUTOUPDATER": "1",
}
"""Variables that are set where the environment does not have them: agents must not update
themselves during the work, nor start a second process that would outlive a stop."""


class AcpAgent:
    """Runs agents on a transport; each session has a process of its own."""

    def __init__(
        self,
        command: str | tuple[str, ...] | None,
        settings: AcpSettings,
        clock: Callable[[], float],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._command = command
        self._settings = settings
        self._conversations = Conversations(clock)
        self._now = now

    @asynccontextmanager
    async def session(self, params: SessionParams) -> AsyncIterator[AcpSession]:
        """Check workspace and program, start the agent and have a session; end it with the block.

        Entering raises AgentError and TransportError.
        """
        await check_workspace(params.transport, params.workspace)
        path = params.env.get("PATH")
        argv = await resolve_command(self._command, DEFAULT_COMMAND, params.transport, path)
        argv = (*argv, *server_arguments(argv, params.mcp_server))
        env = {**UNATTENDED, **params.env, **asking_variables(self._settings, params.env)}
        redacted = redactor(credentials_of(params.env))
        launch = AgentLaunch(
            agent=argv[0].rpartition("/")[2],
            command=Command(
                argv=argv,
                cwd=params.workspace,
                env=env,
                stdin=Stdin.PIPE,
                grace=params.stop_grace,
            ),
            transport=params.transport,
            redacted=redacted,
            traceparent=params.traceparent,
        )
        opening = Opening(
            params=params,
            settings=self._settings,
            conversations=self._conversations,
            redacted=redacted,
            now=self._now,
        )
        new_process = partial(AgentProcess, launch)
        async with started(lambda nursery: AcpSession(opening, nursery, new_process)) as session:
            yield session
