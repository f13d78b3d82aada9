"""The Kiro adapter: one process per turn, outcome from its exit and its stderr."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from sortie.agents import OnEvents, Session, SessionParams
from sortie.agents.kiro.credential import KEY_NAME, CredentialCheck
from sortie.agents.kiro.settings import KiroSettings
from sortie.agents.kiro.turn import Turn
from sortie.agents.launch import check_workspace, resolve_command
from sortie.kiro.arguments import chat
from sortie.kiro.transcript import Transcript
from sortie.model import LOCAL, AgentError, AgentEvent, ErrorKind, TurnOutcome, TurnResult
from sortie.transports import Command

DEFAULT_COMMAND = "kiro-cli"


@dataclass(slots=True)
class _Handle:
    """What the adapter keeps of a session between its turns."""

    argv: tuple[str, ...]
    params: SessionParams = field(repr=False)
    resume: bool = False
    stopped: bool = False
    turn: Turn | None = field(default=None, repr=False)


class KiroAgent:
    """Runs kiro-cli on a transport, for all sessions at once.

    Rule 1: what belongs to a session lives in its handle. Rule 2: a session resumes the
    conversation of its directory only after a turn of its own has succeeded. Rule 3: a stopped
    session starts nothing any more.
    """

    def __init__(
        self,
        command: str | tuple[str, ...] | None,
        settings: KiroSettings,
        clock: Callable[[], float],
    ) -> None:
        self._command = command
        self._options = settings.options()
        self._credential = CredentialCheck(clock)

    def event_stream(self) -> AsyncIterator[AgentEvent] | None:
        """Return None: events come through ``on_event``."""
        return None

    async def start_session(self, params: SessionParams) -> Session:
        """Check workspace, program and credential, in this order; start no process that stays.

        The credential is checked on this machine only: on another host the key is handed over
        with each turn. Raises AgentError.
        """
        await check_workspace(params.transport, params.workspace)
        argv = await resolve_command(
            self._command, DEFAULT_COMMAND, params.transport, params.env.get("PATH")
        )
        if params.transport.host == LOCAL:
            await self._credential.confirm(argv, params)
        return Session(params.resume_session_id or "", _Handle(argv=argv, params=params))

    async def run_turn(
        self, session: Session, prompt: str, on_event: OnEvents | None
    ) -> TurnResult:
        """Run one prompt in a process of its own, resuming after the first that completed."""
        if on_event is None:
            raise TypeError("run_turn needs an on_event to give the agent's events to")
        handle = _handle_of(session)
        if handle.turn is not None:
            raise RuntimeError("a turn of this session is still running; turns are serial")
        if handle.stopped:
            return _stopped()
        handle.turn = self._turn(handle, prompt)
        try:
            result = await handle.turn.run(on_event)
        finally:
            handle.turn = None
        handle.resume = handle.resume or result.outcome is TurnOutcome.COMPLETED
        return result

    async def stop_session(self, session: Session) -> None:
        """End a running turn, which then returns ``turn_cancelled``, and allow no further one."""
        handle = _handle_of(session)
        handle.stopped = True
        if handle.turn is not None:
            await handle.turn.stop()

    def _turn(self, handle: _Handle, prompt: str) -> Turn:
        params = handle.params
        invocation = chat(self._options, prompt, resume=handle.resume)
        command = Command(
            argv=(*handle.argv, *invocation.arguments),
            cwd=params.workspace,
            env=params.env,
            stdin=invocation.stdin,
            grace=params.stop_grace,
        )
        secrets = [params.env.get(KEY_NAME, "").strip()]
        return Turn(params.transport, command, Transcript(secrets))


def _handle_of(session: Session) -> _Handle:
    if not isinstance(session.internal, _Handle):
        raise AgentError(
            ErrorKind.RESPONSE_ERROR, "the session was not started by the kiro adapter"
        )
    return session.internal


def _stopped() -> TurnResult:
    return TurnResult(
        outcome=TurnOutcome.CANCELLED,
        error_kind=ErrorKind.TURN_CANCELLED,
        message="the session was stopped before its turn began",
    )
