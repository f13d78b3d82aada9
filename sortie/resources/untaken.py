"""Bounds on what a connection has sent, and the other side has not taken.

Where a network is cut, what was sent waits in the kernel. It arrives when the network is back, even
where the process that sent it has ended meanwhile, and another daemon leads.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

_TCP_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", None)
_DISCARD = struct.pack("ii", 1, 0)  # of struct linger


class SocketOptions(Protocol):
    """What a socket can do, and asyncio's stand-in for one."""

    @property
    def family(self) -> int:
        """The family of its address."""
        ...

    def setsockopt(self, level: int, name: int, value: int | bytes, /) -> None:
        """Set an option."""
        ...


def give_up_untaken(connection: SocketOptions, seconds: float) -> None:
    """Have the kernel give a connection up, with all that it has sent, where the other side has not
    taken something for so many seconds. A socket that is no TCP connection is left alone."""
    if _TCP_USER_TIMEOUT is not None and connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, _TCP_USER_TIMEOUT, int(seconds * 1000))


def discard_at_close(connection: SocketOptions) -> None:
    """Have the kernel forget what the other side has not taken when the connection is closed, also
    by the end of this process, however it ends."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DISCARD)


def traced(
    bound: Callable[[SocketOptions], object], before_sending: Callable[[], object] = lambda: None
) -> Callable[[str, Mapping[str, Any]], Awaitable[None]]:
    """Return a trace for an HTTP client, which bounds each new connection, and is called right
    before a request is sent. See https://www.encode.io/httpcore/extensions/#trace."""

    async def trace(event: str, told: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            made = told["return_value"].get_extra_info("socket")
            if made is not None:
                bound(made)
        elif event.endswith("send_request_headers.started"):
            before_sending()

    return trace
