"""Passes the bytes of a tunnel on, both ways, until both have ended or nothing comes for long."""

from __future__ import annotations

import trio
from msgspec import Struct

CHUNK = 64 * 1024

HALF_CLOSED_LIMIT = 60.0
"""Seconds in which the other direction has to move after one has ended."""


class Traffic(Struct, kw_only=True):
    """Bytes that one end of a connection has sent, and received."""

    sent: int = 0
    received: int = 0


async def relay(
    agent: trio.SocketStream,
    server: trio.SocketStream,
    traffic: Traffic,
    *,
    first: bytes,
    idle_limit: float,
) -> None:
    """Pass on what comes; ``first`` is what the agent has sent already.

    Returns when both directions have ended, one has broken, or none has moved for ``idle_limit``
    seconds, HALF_CLOSED_LIMIT where one has ended. Closes neither end.
    """
    limit = idle_limit

    def moved() -> None:
        both.deadline = trio.current_time() + limit

    async def end(stream: trio.SocketStream) -> None:
        nonlocal limit
        await stream.send_eof()
        limit = min(limit, HALF_CLOSED_LIMIT)
        moved()

    async def upwards() -> None:
        if first:
            traffic.sent += len(first)
            await server.send_all(first)
        while chunk := await agent.receive_some(CHUNK):
            moved()
            traffic.sent += len(chunk)
            await server.send_all(chunk)
        await end(server)

    async def downwards() -> None:
        while chunk := await server.receive_some(CHUNK):
            moved()
            traffic.received += len(chunk)
            await agent.send_all(chunk)
        await end(agent)

    with trio.move_on_after(idle_limit) as both:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(upwards)
                nursery.start_soon(downwards)
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # where one end is broken, the other has nothing to say
