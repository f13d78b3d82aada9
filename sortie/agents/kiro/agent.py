"""The Kiro adapter: one process per turn, outcome from its exit and its stderr."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from sortie.agents import OnEvents, SessionParams
from sortie.agents.kiro.credential import KEY_NAME, CredentialCheck
from sortie.agents.kiro.settings import KiroSettings
from sortie.agents.kiro.turn import Turn
from sortie.agents.launch import check_workspace, resolve_command
from sortie.kiro.arguments import ChatOptions, chat
from sortie.kiro.transcript import Transcript
from sortie.model import LOCAL, ErrorKind, TurnOutcome, TurnResult
from sortie.transports import Command

DEFAULT_COMMAND = "kiro-cli"


class KiroSession:
    """A conversation in a directory.

    Rule 1: it resumes the conversation of its directory only after a turn of its own has
    succeeded. Rule 2: once it is closed it starts nothing any more.
    """

    def __init__(self, argv: tuple[str, ...], options: ChatOptions, params: SessionParams) -> None:
        self.id = params.resume_session_id or ""
        self._argv = argv
        self._options = options
        self._params = params
        self._resume = False
        self._closed = False
        self._turn: Turn | None = None

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        """Run one prompt in a process of its own, resuming after the first that completed."""
        if self._turn is not None:
            raise RuntimeError("a turn of this session is still running; turns are serial")
        if self._closed:
            return _stopped()
        self._turn = self._next_turn(prompt)
        try:
            result = await self._turn.run(on_events)
        finally:
            self._turn = None
        self._resume = self._resume or result.outcome is TurnOutcome.COMPLETED
        return result

    async def close(self) -> None:
        """End a running turn, which then returns ``turn_cancelled``, and allow no further one."""
        self._closed = True
        if self._turn is not None:
            await self._turn.stop()

    def _next_turn(self, prompt: str) -> Turn:
        params = self._params
        invocation = chat(self._options, prompt, resume=self._resume)
        command = Command(
            argv=(*self._argv, *invocation.arguments),
            cwd=params.workspace,
            env=params.env,
            stdin=invocation.stdin,
            grace=params.stop_grace,
        )
        secrets = [params.env.get(KEY_NAME, "").strip()]
        return Turn(params.transport, command, Transcript(secrets))


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

    @asynccontextmanager
    async def session(self, params: SessionParams) -> AsyncIterator[KiroSession]:
        """Check workspace, program and credential, in this order; start no process that stays.

        The credential is checked on this machine only: on another host the key is handed over
        with each turn. Entering raises AgentError.
        """
        await check_workspace(params.transport, params.workspace)
        argv = await resolve_command(
            self._command, DEFAULT_COMMAND, params.transport, params.env.get("PATH")
        )
        if params.transport.host == LOCAL:
            await self._credential.confirm(argv, params)
        session = KiroSession(argv, self._options, params)
        try:
            yield session
        finally:
            await session.close()


def _stopped() -> TurnResult:
    return TurnResult(
        outcome=TurnOutcome.CANCELLED,
        error_kind=ErrorKind.TURN_CANCELLED,
        message="the session was stopped before its turn began",
    )
