"""Server-sent events: the answer to a client that listens to a broadcaster.

Rule 1: open streams leave connections for everything else (``StreamRoom``).
Rule 2: a client that takes nothing for ``STUCK`` seconds, or falls too far behind, loses its
connection: only closing the socket ends a send that is under way.
Rule 3: a stream ends after ``STREAM_SECONDS``; browsers reconnect by themselves, are authenticated
anew, and miss nothing.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import trio
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sortie.facts import AdapterCrashed, Fact, HttpAnswered
from sortie.telemetry import Publish
from sortie.web.broadcaster import Broadcaster, Subscriber
from sortie.web.responses import error_response

HEARTBEAT = 15.0
"""Seconds of silence after which a comment is sent: proxies end connections without traffic."""

STUCK = 30.0
STREAM_SECONDS = 3600.0

ABORT = "sortie.abort"
"""What the server calls the function that closes a request's connection, in the scope's state."""

_CONNECTIONS_PER_STREAM = 4
_RETRY_AFTER = 5
_FAILED_FEED_PAUSE = 5.0
_HEARTBEAT = b": still here\n\n"
_STREAM_START = {
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
        self.most = max(1, connections // _CONNECTIONS_PER_STREAM)
        self.taken = 0

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Take a place for the length of the block; yields False where none is free."""
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
                await send(_STREAM_START)
            else:
                client = _StreamClient(scope, send)
                with self._broadcaster.listening(self._last_id, client.abort) as listener:
                    await send(_STREAM_START)
                    await client.send_updates(listener, receive)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = f"{self._room.most} clients follow live events already, which is the most"
        headers = {"retry-after": str(_RETRY_AFTER)}
        await error_response(503, message, headers)(scope, receive, send)


class _StreamClient:
    """The client that a stream is sent to."""

    def __init__(self, scope: Scope, send: Send) -> None:
        state: Any = scope.get("state") or {}
        self._close: Callable[[], object] = state.get(ABORT, lambda: None)
        self._send = send
        self._here = trio.CancelScope()
        self._sending_since: float | None = None

    def abort(self) -> None:
        self._here.cancel()
        self._close()

    async def send_updates(self, listener: Subscriber, receive: Receive) -> None:
        """Send the updates of a listener, until the client is gone or its time is over."""
        with self._here:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._leave_when_gone, receive)
                nursery.start_soon(self._leave_when_stuck)
                with trio.move_on_after(STREAM_SECONDS):
                    await self._send_blocks(listener)
                self._here.cancel()

    async def _send_blocks(self, listener: Subscriber) -> None:
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


class LiveEvents(Struct, frozen=True, kw_only=True):
    """All streams: ``events`` is that of ``/api/v1/events``, ``pages`` are those of pages."""

    events: Broadcaster
    room: StreamRoom
    pages: tuple[Broadcaster, ...] = ()

    @property
    def broadcasters(self) -> tuple[Broadcaster, ...]:
        """All of them."""
        return (self.events, *self.pages)

    def notify(self, fact: Fact) -> None:
        """Take a fact for a sign that something may have changed; a sink."""
        if not self.room.taken or isinstance(fact, HttpAnswered):
            return  # a new listener gets everything
        self.events.notify()
        for page in self.pages:
            page.notify()

    async def run(self, publish: Publish) -> None:
        """Send what changes to all streams, until cancelled."""
        async with trio.open_nursery() as nursery:
            for broadcaster in self.broadcasters:
                nursery.start_soon(_keep_running, broadcaster, publish)


async def _keep_running(broadcaster: Broadcaster, publish: Publish) -> None:
    """Run a broadcaster; where its feed fails, only its own listeners are dropped."""
    while True:
        try:
            await broadcaster.run()
        except Exception:
            publish(AdapterCrashed(where="live events", traceback=traceback.format_exc()))
            broadcaster.drop_all()
        await trio.sleep(_FAILED_FEED_PAUSE)
