"""Passes one request on to a server and its answer back, as it comes.

Rule 1: both are written anew from what was understood, so that nobody behind this proxy can
understand them otherwise.
Rule 2: one request is answered on a connection, so that each is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import h11
import trio

from sortie.transports.walls.destinations import Unreachable
from sortie.transports.walls.http_side import AgentSide, ServerSide
from sortie.transports.walls.relay import CHUNK
from sortie.transports.walls.request_target import Headers, header

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers that are between two neighbours, and about one connection."""

_CLOSE = (b"Connection", b"close")
_NONE = "the server has closed the connection without an answer"


class AnswerFilter(Protocol):
    """Changes an answer on its way, without a change of its length."""

    def headers(self, headers: Headers) -> Sequence[tuple[bytes, bytes]]:
        """Return the headers that are passed on. Raises Unreachable for what cannot be."""
        ...

    def body(self, chunk: bytes) -> bytes:
        """Return what of the body can be passed on after a further chunk."""
        ...

    def rest(self) -> bytes:
        """Return what was kept back of the body."""
        ...


class Unfiltered:
    """Passes an answer on as it is."""

    def headers(self, headers: Headers) -> Sequence[tuple[bytes, bytes]]:
        return list(headers)

    def body(self, chunk: bytes) -> bytes:
        return chunk

    def rest(self) -> bytes:
        return b""


def request_for(request: h11.Request, host: str, path: str, headers: Headers) -> h11.Request:
    """Return the request that a server is sent; ``headers`` are the agent's, perhaps changed.

    What the agent says of the host is left out: the server is told the one that was judged.
    """
    kept = [(name, value) for name, value in _end_to_end(headers) if name != b"host"]
    framing = [(name, value) for name, value in headers if name == b"transfer-encoding"]
    return h11.Request(
        method=request.method,
        target=path.encode("ascii"),
        headers=[(b"Host", host.encode("ascii")), *kept, *framing, _CLOSE],
    )


async def forward(
    agent: AgentSide,
    server: ServerSide,
    request: h11.Request,
    changed: AnswerFilter,
    *,
    idle_limit: float,
) -> None:
    """Send a request and the rest of the agent's body, and answer with what the server answers.

    Returns early where the agent has gone. Raises Unreachable where the server gives no answer, and
    trio.BrokenResourceError where its answer breaks off.
    """
    failed: Exception | None = None
    with trio.move_on_after(idle_limit) as both:

        def moved() -> None:
            both.deadline = trio.current_time() + idle_limit

        async with trio.open_nursery() as nursery:
            nursery.start_soon(_send_request, agent, server, request, moved, nursery.cancel_scope)
            try:
                await _pass_answer(agent, server, changed, moved)
            except (Unreachable, trio.BrokenResourceError) as error:
                failed = error
            nursery.cancel_scope.cancel()
    if failed is not None:
        raise failed
    if both.cancelled_caught:
        raise Unreachable("the server says nothing any more", timed_out=True)


async def _send_request(
    agent: AgentSide,
    server: ServerSide,
    request: h11.Request,
    moved: Callable[[], None],
    all_of_it: trio.CancelScope,
) -> None:
    """Pass the request on; when the agent goes away then, end all of it."""
    try:
        await server.send(request)
        while isinstance(event := await agent.next_event(), h11.Data):
            moved()
            await server.send(event)
        await server.send(h11.EndOfMessage())
        await _gone(agent)
    except trio.BrokenResourceError:
        return  # a server that wants no more of a body may have answered
    except h11.RemoteProtocolError:
        pass  # the body is none: nothing is owed to such an agent
    all_of_it.cancel()


async def _gone(agent: AgentSide) -> None:
    """Wait until the agent closes its end, or sends what was not asked for."""
    unasked = 0
    while unasked < CHUNK and (chunk := await agent.stream.receive_some(CHUNK)):
        unasked += len(chunk)


async def _pass_answer(
    agent: AgentSide, server: ServerSide, changed: AnswerFilter, moved: Callable[[], None]
) -> None:
    answer = await _head_of_answer(server)
    headers = changed.headers(_end_to_end(answer.headers))
    await agent.send(
        h11.Response(
            status_code=answer.status_code, reason=answer.reason, headers=[*headers, _CLOSE]
        )
    )
    try:
        while isinstance(event := await server.next_event(), h11.Data):
            moved()
            await _send_body(agent, changed.body(bytes(event.data)))
    except h11.RemoteProtocolError as error:
        raise trio.BrokenResourceError from error
    await _send_body(agent, changed.rest())
    await agent.send(h11.EndOfMessage())


async def _head_of_answer(server: ServerSide) -> h11.Response:
    try:
        while isinstance(event := await server.next_event(), h11.InformationalResponse):
            pass
    except h11.RemoteProtocolError as error:
        said = server.traffic.sent
        raise Unreachable("the server's answer is not one of HTTP" if said else _NONE) from error
    except trio.BrokenResourceError as error:
        raise Unreachable(_NONE) from error
    if not isinstance(event, h11.Response):
        raise Unreachable(_NONE)
    return event


async def _send_body(agent: AgentSide, chunk: bytes) -> None:
    if chunk:
        await agent.send(h11.Data(data=chunk))


def _end_to_end(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers that are not about one connection; a length only where it is in force."""
    named = b",".join(header(headers, b"connection")).lower().split(b",")
    dropped = _HOP_BY_HOP | ({name.strip() for name in named} - {b"content-length"})
    if header(headers, b"transfer-encoding"):
        dropped |= {b"content-length"}
    return [(name, value) for name, value in headers if name not in dropped]
