"""A conversation of several turns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from sortie.kiro.client.errors import CLIConnectionError
from sortie.kiro.client.messages import Message, ResultMessage, SessionInfo
from sortie.kiro.client.options import (
    KiroAgentOptions,
    check_options,
    directory_of,
    environment_of,
)
from sortie.kiro.client.queries import Response, end_turn, run_turn
from sortie.kiro.client.sessions import (
    KeptConversations,
    check_session,
    delete_session,
    list_sessions,
)
from sortie.kiro.client.turn import Continuation, Turn
from sortie.kiro.client.waits import drive


class KiroSDKClient:
    """A conversation with Kiro in one directory, turn by turn.

    Rule 1: at most one turn is under way. Rule 2: a turn goes on with the conversation of the turn
    before it, once one has succeeded; the first one begins a conversation, or goes on with the one
    that ``resume_session`` names. Rule 3: nothing runs any more when the client is left.
    """

    def __init__(self, options: KiroAgentOptions | None = None) -> None:
        self._options = options or KiroAgentOptions()
        self._continuation: Continuation | None = None
        self._turn: Turn | None = None
        self._is_open = False

    @property
    def session_id(self) -> str | None:
        """The id of the conversation; None before its first turn, and where no store tells it."""
        return self._continuation.session_id if self._continuation else None

    async def __aenter__(self) -> Self:
        check_options(self._options)
        directory_of(self._options)
        self._is_open = True
        if self._options.resume_session is not None:
            await self.resume_session(self._options.resume_session)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_open = False
        turn, self._turn = self._turn, None
        if turn is not None:
            await end_turn(turn)

    async def query(self, prompt: str) -> None:
        """Start kiro-cli with a prompt; ``receive_response`` tells what came of it.

        Raises CLINotFoundError, AuthenticationError, SessionNotFoundError and CLIConnectionError;
        the last also where the response to the prompt before has not been received.
        """
        self._check_open()
        if self._turn is not None:
            raise CLIConnectionError(
                "the response to the last prompt has not been received; call receive_response()"
            )
        turn = self._turn = Turn(prompt, self._options, self._continuation)
        launched = False
        try:
            await drive(turn.launch())
            launched = True
        finally:
            if not launched:
                self._turn = None
                await end_turn(turn)

    def receive_response(self) -> AsyncIterator[Message]:
        """Return the messages of the turn, as the function ``query`` does, and raise as it does.

        Raises CLIConnectionError where no prompt was sent.
        """
        self._check_open()
        if self._turn is None:
            raise CLIConnectionError("no prompt was sent; call query() first")
        turn = self._turn

        async def receive() -> list[Message]:
            try:
                messages = await run_turn(turn, turn.finish())
            finally:
                if self._turn is turn:
                    self._turn = None
            self._go_on_after(messages)
            return messages

        return Response(receive)

    async def list_sessions(self) -> list[SessionInfo]:
        """Return the sessions that Kiro has kept for the directory, the newest first."""
        return await drive(list_sessions(self._kept()))

    async def resume_session(self, session_id: str) -> None:
        """Have the next prompt go on with a session of the directory.

        Raises SessionNotFoundError where it has none with this id, and CLIJSONDecodeError where
        that is damaged.
        """
        await drive(check_session(self._kept(), session_id))
        self._continuation = Continuation(session_id=session_id, named=True)

    async def delete_session(self, session_id: str) -> None:
        """Delete a session; where it is the current one, the next prompt begins another.

        Raises SessionNotFoundError where there is none with this id.
        """
        await drive(delete_session(self._kept(), session_id))
        if self.session_id == session_id:
            self._continuation = None

    def _go_on_after(self, messages: list[Message]) -> None:
        told = [m.session_id for m in messages if isinstance(m, ResultMessage)]
        known = next((each for each in told if each is not None), self.session_id)
        self._continuation = Continuation(session_id=known)

    def _kept(self) -> KeptConversations:
        self._check_open()
        return KeptConversations(directory_of(self._options), environment_of(self._options))

    def _check_open(self) -> None:
        if not self._is_open:
            raise CLIConnectionError(
                "the client is not open; use `async with KiroSDKClient() as c`"
            )
