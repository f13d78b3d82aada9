"""Server-sent events: the answer to a client that listens to a broadcaster.

Rule 1: the streams that are open leave connections for everything else (``StreamRoom``).
Rule 2: a client that takes nothing for ``STUCK`` seconds, or falls too far behind, loses its
connection; what is under way in a socket can be ended by closing it only.
Rule 3: a stream ends after ``LIFE`` seconds; browsers come back by themselves, are asked anew who
they are, and miss nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sortie.web.broadcaster import Broadcaster, Listener
from sortie.web.responses import error_response

HEARTBEAT = 15.0
"""Seconds of silence after which a comment is sent: proxies end connections without traffic."""

STUCK = 30.0
LIFE = 3600.0

ABORT = "sortie.abort"
"""What the server calls the function that closes a request's connection, in the scope's state."""

_SHARE = 4
_RETRY_AFTER = 5
_HEARTBEAT = b": still here\n\n"
_START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"x-accel-buffering", b"no"),  # proxies that would keep events back
    ],
}


class StreamRoom:
    """How many streams may be open at once: a quarter of the connections, at least one."""

    def __init__(self, connections: int) -> None:
        self.most = max(1, connections // _SHARE)
        self.taken = 0

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Take a place for the length of the block, if there is one, and tell whether."""
        if self.taken >= self.most:
            yield False
            return
        self.taken += 1
        try:
            yield True
        finally:
            self.taken -= 1


class EventStream(Response):
    """An answer that lasts as long as its client listens.

    The id of the last event that the client has is its header ``Last-Event-ID``, or the parameter
    ``last_event_id`` for a page that was made with what the id stands for.
    """

    def __init__(self, broadcaster: Broadcaster, room: StreamRoom, request: Request) -> None:
        super().__init__()
        self._broadcaster = broadcaster
        self._room = room
        self._last_id = request.headers.get(
            "last-event-id", request.query_params.get("last_event_id")
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        with self._room.place() as has_place:
            if not has_place:
                await self._refuse(scope, receive, send)
                return
            if scope["method"] == "HEAD":
                await send(_START)
            else:
                client = _Client(scope, send)
                with self._broadcaster.listening(self._last_id, client.abort) as listener:
                    await send(_START)
                    await client.tell(listener, receive)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = f"{self._room.most} clients follow live events already, which is the most"
        headers = {"retry-after": str(_RETRY_AFTER)}
        await error_response(503, message, headers)(scope, receive, send)


class _Client:
    """Who a stream is sent to."""

    def __init__(self, scope: Scope, send: Send) -> None:
        state: Any = scope.get("state") or {}
        self._close: Callable[[], object] = state.get(ABORT, lambda: None)
        self._send = send
        self._here = trio.CancelScope()
        self._sending_since: float | None = None

    def abort(self) -> None:
        self._here.cancel()
        self._close()

    async def tell(self, listener: Listener, receive: Receive) -> None:
        """Send what a listener is told, until the client is gone or has been here for long."""
        with self._here:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._leave_when_gone, receive)
                nursery.start_soon(self._leave_when_stuck)
                with trio.move_on_after(LIFE):
                    await self._send_blocks(listener)
                self._here.cancel()

    async def _send_blocks(self, listener: Listener) -> None:
        while True:
            block: bytes | None = _HEARTBEAT
            with trio.move_on_after(HEARTBEAT):
                block = await listener.next_block()
            if block is None:
                return
            self._sending_since = trio.current_time()
            await self._send({"type": "http.response.body", "body": block, "more_body": True})
            self._sending_since = None

    async def _leave_when_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._here.cancel()

    async def _leave_when_stuck(self) -> None:
        while True:
            await trio.sleep(STUCK / 2)
            since = self._sending_since
            if since is not None and trio.current_time() - since >= STUCK:
                self.abort()
