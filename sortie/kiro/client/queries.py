"""A single prompt: ``query`` under asyncio or trio, ``query_sync`` without an event loop."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio

from sortie.kiro.client.messages import Message
from sortie.kiro.client.options import KiroAgentOptions, check_options
from sortie.kiro.client.turn import Continuation, Turn
from sortie.kiro.client.waits import Waits, drive, drive_without_loop


def query(*, prompt: str, options: KiroAgentOptions | None = None) -> AsyncIterator[Message]:
    """Put one prompt to Kiro and return the messages of the turn, the ``ResultMessage`` last.

    They come when the turn is over, since only then Kiro's store has its tool uses. A cancelled
    caller waits until all processes of the turn are gone. Raises OptionError at once, and the other
    errors with the first message.
    """
    turn = single_turn(prompt, options)
    return Response(lambda: run_turn(turn, turn.run()))


def query_sync(*, prompt: str, options: KiroAgentOptions | None = None) -> list[Message]:
    """Put one prompt to Kiro, wait, and return the messages of the turn.

    For scripts: it blocks its thread, and uses no event loop, so it also works where one runs.
    Raises what ``query`` raises. An interrupt ends all processes of the turn.
    """
    turn = single_turn(prompt, options)
    try:
        return drive_without_loop(turn.run())
    finally:
        try:
            drive_without_loop(turn.stop())
        finally:
            turn.kill()


def single_turn(prompt: str, options: KiroAgentOptions | None) -> Turn:
    """Return a turn of a conversation of its own, or of the one that the options name."""
    options = options or KiroAgentOptions()
    check_options(options)
    wanted = options.resume_session
    return Turn(
        prompt, options, None if wanted is None else Continuation(session_id=wanted, named=True)
    )


async def run_turn(turn: Turn, waits: Waits[list[Message]]) -> list[Message]:
    """Run a turn, or what is left of it, and see that nothing of it stays."""
    try:
        return await drive(waits)
    finally:
        await end_turn(turn)


async def end_turn(turn: Turn) -> None:
    """End what is left of a turn, also where this task is cancelled."""
    try:
        with anyio.CancelScope(shield=True):
            await drive(turn.stop())
    finally:
        turn.kill()  # where asyncio has cancelled this task once more, which no scope keeps off


class Response(AsyncIterator[Message]):
    """The messages of a turn, which is run when the first one is asked for.

    No generator: one that is left before its end would have to be closed by hand.
    """

    def __init__(self, run: Callable[[], Awaitable[list[Message]]]) -> None:
        self._run = run
        self._messages: deque[Message] | None = None

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        if self._messages is None:
            self._messages = deque()
            self._messages.extend(await self._run())
        if not self._messages:
            raise StopAsyncIteration
        return self._messages.popleft()
