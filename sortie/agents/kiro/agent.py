"""The Kiro adapter: one process per turn, outcome from its exit and its stderr."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from sortie.agents import Session, SessionParams
from sortie.agents.kiro.credential import CredentialCheck
from sortie.agents.kiro.reader import KiroReader
from sortie.agents.kiro.settings import DEFAULT_COMMAND, KiroSettings
from sortie.agents.kiro.traced_session import THREADS, traced
from sortie.agents.launch import check_workspace, resolve_command
from sortie.agents.turn_process import TurnCommand, turn_processes
from sortie.kiro.headless.arguments import KEY_NAME, ChatOptions, chat
from sortie.model import LOCAL
from sortie.model.secrets import redactor


class _KiroTurns:
    """The turns of a session. A turn resumes the directory's conversation only after an earlier
    turn of the same session has succeeded."""

    def __init__(self, argv: tuple[str, ...], options: ChatOptions) -> None:
        self._argv = argv
        self._options = options
        self._last: KiroReader | None = None
        self._resume = False

    def command(self, prompt: str) -> TurnCommand:
        """Return how the next prompt is run."""
        self._resume |= self._last is not None and self._last.completed
        invocation = chat(self._options, prompt, resume=self._resume)
        self._last = KiroReader()
        argv = (*self._argv, *invocation.arguments)
        return TurnCommand(argv=argv, stdin=invocation.stdin, reader=self._last)


class KiroAgent:
    """Runs kiro-cli on a transport, for all sessions at once."""

    def __init__(
        self,
        command: str | tuple[str, ...] | None,
        settings: KiroSettings,
        clock: Callable[[], float],
    ) -> None:
        self._command = command
        self._options = settings.options()
        self._credential = CredentialCheck(clock)
        self._readings = trio.CapacityLimiter(THREADS)

    @asynccontextmanager
    async def session(self, params: SessionParams) -> AsyncIterator[Session]:
        """Check workspace, program and credential, in this order; start no process that stays.

        The credential is checked on this machine only: on another host the key is handed over
        with each turn. Entering raises AgentError and TransportError.
        """
        await check_workspace(params.transport, params.workspace)
        argv = await resolve_command(
            self._command, DEFAULT_COMMAND, params.transport, params.env.get("PATH")
        )
        if params.transport.host == LOCAL:
            await self._credential.confirm(argv, params)
        turns = _KiroTurns(argv, self._options)
        key = params.env.get(KEY_NAME, "").strip()
        async with (
            turn_processes("kiro", params, turns.command, [key]) as session,
            traced(session, params, self._readings, redactor([key])) as traced_session,
        ):
            yield traced_session
