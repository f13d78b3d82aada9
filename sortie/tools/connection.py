"""One client of the tools, and the program of the run that it is served through."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable

import trio

from sortie.model import TransportError
from sortie.tools.calls import ToolCalls
from sortie.tools.client_lines import LINE_LIMIT, ClientLines, ClientLineTooLong
from sortie.tools.commands import is_command, serve_command
from sortie.transports import Command, Process, Transport

SEND_PATIENCE = 60.0
"""Seconds that a client is given to take an answer."""

LAST_PATIENCE = 5.0
"""Seconds for what is still to be done when a client, or the run, is over."""

Send = Callable[[bytes], Awaitable[None]]
Serve = Callable[[ClientLines, Send, ToolCalls], Awaitable[None]]


class ToolConnection:
    """One client, from the wait for it to its end.

    ``end`` says what went wrong, None where nothing did. ``came_or_ended`` is set once a client is
    there, or none will be.
    """

    def __init__(self, transport: Transport, token: str, calls: ToolCalls, serve: Serve) -> None:
        self._transport = transport
        self._token = token
        self._calls = calls
        self._serve = serve
        self._scope = trio.CancelScope()
        self.has_client = False
        self.is_given_up = False
        self.end: str | None = None
        self.came_or_ended = trio.Event()

    def give_up(self) -> None:
        """Wait for no client any more; one that has come is served on."""
        if not self.has_client:
            self.is_given_up = True
            self._scope.cancel()

    async def live(self, command: Command) -> None:
        """Start the program that waits for a client, and serve that."""
        try:
            with self._scope:
                async with self._transport.process(command) as process:
                    await self._converse(process)
        except Exception as exc:  # whatever it is, the run goes on without this client
            self.end = _reason(exc)
        if not self.has_client and self.end is None:
            self.end = "the program that waits for a client has ended"
        self.came_or_ended.set()

    async def _converse(self, process: Process) -> None:
        lines, stdin = ClientLines(process.output()), process.stdin
        assert stdin is not None
        first = await lines.next()
        if first is None:
            self.end = lines.errors or None
            return
        self.has_client = True
        self.came_or_ended.set()
        if not hmac.compare_digest(first.strip(), self._token.encode()):
            self.end = "it did not say the token of the run"
            return

        async def send(data: bytes) -> None:
            with trio.fail_after(SEND_PATIENCE):
                await stdin.send_all(data)

        is_call = is_command(await lines.peek() or b"")
        await (serve_command if is_call else self._serve)(lines, send, self._calls)
        await stdin.aclose()
        with trio.move_on_after(LAST_PATIENCE):
            await process.wait()


def _reason(error: Exception) -> str | None:
    """Say why a client is no longer served, None where it has gone by itself."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    match error:
        case trio.BrokenResourceError():
            return None
        case trio.TooSlowError():
            return f"it took no answer for {SEND_PATIENCE:.0f} seconds"
        case ClientLineTooLong():
            return f"it sent a line of more than {LINE_LIMIT} bytes"
        case TransportError():
            return str(error)
        case _:
            return f"the server of the tools has failed: {error!r}"
