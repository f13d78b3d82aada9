"""The MCP server of one client, by the official SDK; imported only where tools are wanted.

What the SDK reads and answers goes through streams without a buffer, so that a client which sends
more than it takes is not read any further.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
import trio
from mcp.server.lowlevel import Server
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage

import sortie
from sortie.tools.arguments import DESCRIBED
from sortie.tools.calls import ToolCalls
from sortie.tools.client_lines import ClientLines

OPEN_LIMIT = 16
"""Requests of a client that are answered at once; further ones are not read until then."""

_INSTRUCTIONS = (
    "Tools of Sortie, which runs you on an issue of a tracker: what people know of your work goes"
    " through them. They concern the issue of this run alone."
)

Send = Callable[[bytes], Awaitable[None]]
"""Writes bytes to the client. Raises trio.BrokenResourceError where that is gone."""


async def serve(lines: ClientLines, send: Send, calls: ToolCalls) -> None:
    """Serve a client until its last line is answered.

    Raises ClientLineTooLong, TransportError, and trio.BrokenResourceError where the client is gone.
    """
    server = _server(calls)
    to_server, of_client = create_context_streams[SessionMessage | Exception](0)
    to_client, of_server = create_context_streams[SessionMessage](0)
    requests = _OpenRequests()

    async def answer() -> None:
        await server.run(of_client, to_client, server.create_initialization_options())

    async def write() -> None:
        async with of_server:
            async for message in of_server:
                requests.answered(message.message)
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await send(text.encode() + b"\n")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        nursery.start_soon(write)
        async with to_server:
            while (line := await lines.next()) is not None:
                if not line.strip():
                    continue
                message = _message(line)
                if not isinstance(message, Exception):
                    await requests.wait_for_room(message.message)
                try:
                    await to_server.send(message)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    break
            await requests.wait_for_end()


def _message(line: bytes) -> SessionMessage | Exception:
    """Return the message of a line; the SDK answers to an error as the protocol has it."""
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as exc:
        return exc


def _server(calls: ToolCalls) -> Server[Any]:
    tools = [
        types.Tool(
            name=name.value,
            description=DESCRIBED[name].description,
            input_schema=DESCRIBED[name].schema,
            annotations=types.ToolAnnotations(read_only_hint=DESCRIBED[name].reads),
        )
        for name in calls.names
    ]

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = await calls.call(params.name, params.arguments or {})
        content = types.TextContent(type="text", text=answer.text)
        return types.CallToolResult(content=[content], is_error=answer.is_error)

    return Server(
        "sortie",
        version=sortie.__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


class _OpenRequests:
    """The requests of a client that are not answered yet, by their ids."""

    def __init__(self) -> None:
        self._open: set[tuple[type, str | int]] = set()
        self._changed = trio.Event()

    async def wait_for_room(self, message: types.JSONRPCMessage) -> None:
        """Note a request, once there are fewer than OPEN_LIMIT."""
        if isinstance(message, types.JSONRPCRequest):
            while len(self._open) >= OPEN_LIMIT:
                await self._changed.wait()
            self._open.add((type(message.id), message.id))
        elif (
            isinstance(message, types.JSONRPCNotification)
            and message.method == "notifications/cancelled"
            and message.params is not None
        ):  # it has no answer any more
            self._close(message.params.get("requestId"))

    def answered(self, message: types.JSONRPCMessage) -> None:
        """Forget a request that is answered now."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._close(message.id)

    async def wait_for_end(self) -> None:
        """Wait until all are answered."""
        while self._open:
            await self._changed.wait()

    def _close(self, id_: object) -> None:
        if isinstance(id_, str | int):
            self._open.discard((type(id_), id_))
        self._changed.set()
        self._changed = trio.Event()
