"""The Kiro adapter: one process per turn, outcome from its exit and its stderr."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import trio

from sortie.agents import Session, SessionParams
from sortie.agents.exits import Failure
from sortie.agents.kiro.credential import AUTHENTICATION_FAILED, CredentialCheck
from sortie.agents.kiro.settings import DEFAULT_COMMAND, KiroSettings
from sortie.agents.kiro.traced_session import THREADS, traced
from sortie.agents.launch import check_workspace, resolve_command
from sortie.agents.output import LastAnswer
from sortie.agents.turn_process import TurnCommand, turn_processes
from sortie.kiro.headless.arguments import KEY_NAME, ChatOptions, chat
from sortie.kiro.headless.trailer import TRAILER_PREFIX, Trailer, find_trailer
from sortie.model import LOCAL, ErrorKind
from sortie.model.secrets import redactor
from sortie.model.turns import AgentEvent, AnswerGiven, Usage, notification

_MEANINGS = {
    2: "it did not accept its arguments; does this version of Kiro know every kiro.* setting?",
    3: "a required MCP server did not start",
    4: "the agent named by kiro.agent does not exist",
    255: "where it runs over SSH, the connection failed",
}

_ANSWER_BEGINS = "\n> "
"""Begins each answer of the model on stdout."""


class KiroReader:
    """Reads one turn; see TurnReader. ``completed`` is True once it is known to have succeeded.

    Exit 0 alone is no success: Kiro exits 0 with a bad key too. Only the trailer proves that a turn
    ran. Its credits are reported whatever the outcome, since they were spent.
    """

    def __init__(self) -> None:
        self.completed = False
        self._printed = False
        self._authentication_failed = False
        self._trailer: Trailer | None = None
        self._answer = LastAnswer()

    def stdout(self, line: str) -> Sequence[AgentEvent]:
        """Return a notification where there is text in the line."""
        return self.stdout_lines([line])

    def stdout_lines(self, lines: Sequence[str]) -> Sequence[AgentEvent]:
        """Return one notification for all lines with text in them."""
        texts = [line for line in lines if line]
        if not texts:
            return []
        self._printed = True
        said = "\n".join(lines)
        _, begins, last = f"\n{said}".rpartition(_ANSWER_BEGINS)
        if begins:
            self._answer.close()
        self._answer.add(last if begins else said, joint="\n")
        return [notification(texts)]

    def stderr(self, line: str) -> bool:
        """Show all but the trailer."""
        self._authentication_failed |= AUTHENTICATION_FAILED in line
        return not line.startswith(TRAILER_PREFIX)

    def close(self, stderr: str) -> Sequence[AgentEvent]:
        """Return the trailer's credits and the last answer."""
        self._trailer = find_trailer(stderr)
        spent = self._trailer.credits if self._trailer else None
        events: list[AgentEvent] = [] if spent is None else [Usage(credits=spent)]
        said = self._answer.text
        return [*events, AnswerGiven(text=said)] if said else events

    def failure(self, status: int) -> Failure | None:
        """Return what an exit status means."""
        if status == 0:
            return self._failure_at_exit_0()
        meaning = _MEANINGS.get(status)
        reason = f"{status} ({meaning})" if meaning else str(status)
        return Failure(ErrorKind.PORT_EXIT, f"kiro exited with a non-zero status: {reason}")

    def _failure_at_exit_0(self) -> Failure | None:
        if self._trailer:
            self.completed = True
            return None
        if self._authentication_failed and not self._printed:
            return Failure(ErrorKind.RESPONSE_ERROR, "kiro authentication failed")
        return Failure(ErrorKind.TURN_FAILED, "kiro exited without a credits trailer")


_RESUMES = "resumes"
"""The memo of a turn that resumes the directory's conversation."""


class _KiroTurns:
    """The turns of a session. A turn resumes the directory's conversation only after an earlier
    turn of the same session has succeeded; one that begins a conversation has the ``guide`` behind
    its prompt."""

    def __init__(self, argv: tuple[str, ...], options: ChatOptions, guide: str) -> None:
        self._argv = argv
        self._guide = guide
        self._options = options
        self._last: KiroReader | None = None
        self._resume = False

    def command(self, prompt: str) -> TurnCommand:
        """Return how the next prompt is run."""
        self._resume |= self._last is not None and self._last.completed
        if self._guide and not self._resume:
            prompt = f"{prompt}\n\n{self._guide}"
        invocation = chat(self._options, prompt, resume=self._resume)
        self._last = KiroReader()
        argv = (*self._argv, *invocation.arguments)
        memo = _RESUMES if self._resume else ""
        return TurnCommand(argv=argv, stdin=invocation.stdin, reader=self._last, memo=memo)

    def adopt(self, memo: str) -> TurnCommand:
        """Return what a turn was run by that another daemon has begun."""
        self._resume, self._last = memo == _RESUMES, KiroReader()
        return TurnCommand(argv=self._argv, reader=self._last, memo=memo)


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
        # Kiro turns MCP off under an API key, so that its tools are called by commands.
        server = params.mcp_server
        turns = _KiroTurns(argv, self._options, "" if server is None else server.guide)
        key = params.env.get(KEY_NAME, "").strip()
        async with (
            turn_processes("kiro", params, turns.command, [key], turns.adopt) as session,
            traced(session, params, self._readings, redactor([key])) as traced_session,
        ):
            yield traced_session
