"""One program in a pod, with its stdin and its output, over a WebSocket.

Rule 1: one task reads the socket and one writes to it, so that a task which is cancelled while it
sends leaves no frame in two. Rule 2: while what came is not taken, no more is read.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import trio
import wsproto.events

from sortie.model import HostError, HostTrouble
from sortie.transports.remote.channel import Channel
from sortie.transports.remote.launch import HostGone
from sortie.transports.remote.protocol import ScriptOutput

if TYPE_CHECKING:
    import httpx_ws

_STDIN, _STDOUT, _STDERR, _STATUS, _CLOSE = 0, 1, 2, 3, 255
_PIECE = 32 * 1024
_PING_EVERY = 15.0  # seconds
_PONG_BOUND = 30.0
_EXPLANATION_BOUND = 5.0

Connect = Callable[[], AbstractAsyncContextManager["httpx_ws.AsyncWebSocketSession"]]


class ExecChannel(Channel):
    """A program in a pod, whose stdin begins with ``text``."""

    def __init__(
        self, host: str, text: bytes, parser: ScriptOutput, why_gone: Callable[[], Awaitable[str]]
    ) -> None:
        super().__init__(parser)
        self._host = host
        self._why_gone = why_gone
        self._refused = False
        self._scope: trio.CancelScope | None = None
        self._opened = trio.Event()
        self._failure: HostError | None = None
        self._all_came = False
        self._out: deque[tuple[bytes, trio.Event | None]] = deque()
        self._stdin_ended = False
        self._has_out = trio.Event()
        self._room = trio.Event()
        self._beat: tuple[float, trio.CancelScope] | None = None
        self.write(text)

    def bind(self, scope: trio.CancelScope) -> None:
        """Note the scope in which it runs."""
        self._scope = scope

    async def opened(self) -> None:
        """Wait until the program runs. Raises HostError where it does not."""
        await self._opened.wait()
        if self._failure is not None:
            raise self._failure

    def write(self, data: bytes) -> None:
        """Write to the program's stdin, in order, without waiting; behind its end it is dropped."""
        if data:
            self._queue(data, None)

    async def send(self, data: bytes | bytearray | memoryview) -> bool:
        """Write as fast as the pod takes it; return whether it has taken all."""
        view = memoryview(data)
        for at in range(0, max(len(view), 1), _PIECE):
            done = trio.Event()
            if not self._queue(bytes(view[at : at + _PIECE]), done):
                await trio.lowlevel.checkpoint()
                return False
            await done.wait()
            if self.closed.is_set():
                return False
        return True

    def write_eof(self) -> None:
        """End the program's stdin after what was written."""
        if not self._stdin_ended:
            self._stdin_ended = True
            self.stop_beating()
            self._put(bytes([_CLOSE, _STDIN]), None)

    def finish(self) -> None:
        """End the stdin, and take all that still comes, whether that is read or not."""
        self._drains = True
        self.write_eof()
        self._resume_reading()

    def beat(self, seconds: float, first: bytes = b"") -> None:
        """Write ``first``, and then a line every so many seconds."""
        self.write(first)
        self._beat = (seconds, trio.CancelScope())
        trio.lowlevel.spawn_system_task(self._beat_on)

    def stop_beating(self) -> None:
        """Write no more lines by itself."""
        if self._beat is not None:
            self._beat[1].cancel()

    def kill(self) -> None:
        """Nothing can be killed over this channel; the end of its stdin has to do."""

    def abort(self) -> None:
        """Close the channel at once and drop what is still to come."""
        self._aborted = True
        self.stop_beating()
        if self._scope is not None:
            self._scope.cancel()
        self._end()

    def _resume_reading(self) -> None:
        if self._has_room():
            self._room.set()

    async def run(self, connect: Connect) -> None:
        """Connect, and pass everything on until the end."""
        try:
            await self._run_or_fail(connect)
            if self._refused:
                await self._explain()
        finally:
            self._end()

    async def _run_or_fail(self, connect: Connect) -> None:
        try:
            await self._run(connect)
        except HostError as exc:
            self._fail(exc)
        except BaseExceptionGroup as group:
            errors, others = group.split(Exception)
            if errors is not None:
                self._fail(_host_error(errors) or self._loss(_first_reason(errors)))
            if others is not None:
                raise others from None
        except Exception as exc:
            self._fail(self._loss(_first_reason(exc)))

    async def _explain(self) -> None:
        """Say of a program that its node has refused whether its pod is no more.

        An API server opens the WebSocket before it asks the node.
        """
        with trio.move_on_after(_EXPLANATION_BOUND):
            if self.lost is not None and (why := await self._why_gone()):
                self.lost = HostGone(f"{why} (on host {self._host})")

    async def _run(self, connect: Connect) -> None:
        async with connect() as socket:
            self._opened.set()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write_all, socket)
                nursery.start_soon(self._ping, socket)
                await self._read_all(socket)
                nursery.cancel_scope.cancel()

    async def _read_all(self, socket: httpx_ws.AsyncWebSocketSession) -> None:
        while not self._all_came:
            event = await socket.receive()
            if isinstance(event, wsproto.events.BytesMessage) and event.data:
                self._take_message(event.data[0], bytes(event.data[1:]))
            while not self._has_room():
                self._room = trio.Event()
                await self._room.wait()

    def _take_message(self, number: int, content: bytes) -> None:
        if number in (_STDOUT, _STDERR):
            for item in self.parser.feed(number, content):
                self._append(item)
            self._wake()
            if self.parser.gone or self.parser.is_complete:
                self.conclude()
        elif number == _STATUS:
            self._note_status(json.loads(content))

    def _note_status(self, status: dict[str, Any]) -> None:
        self._all_came = True
        if status.get("status") == "Success":
            self.exit_status = 0
        else:
            causes = (status.get("details") or {}).get("causes") or ()
            codes = [one["message"] for one in causes if one.get("reason") == "ExitCode"]
            if codes:
                self.exit_status = int(codes[0])
            else:
                self._all_came = False
                self._refused = True
                self._fail(self._loss(str(status.get("message") or "it gave no reason")))
        self.exited.set()

    async def _write_all(self, socket: httpx_ws.AsyncWebSocketSession) -> None:
        while True:
            while not self._out:
                self._has_out = trio.Event()
                await self._has_out.wait()
            frame, done = self._out.popleft()
            try:
                await socket.send_bytes(frame)
            finally:
                if done is not None:
                    done.set()

    async def _ping(self, socket: httpx_ws.AsyncWebSocketSession) -> None:
        """Notice a link that is dead and says nothing; while we do not read, no pong is seen."""
        while True:
            await trio.sleep(_PING_EVERY)
            pong = await socket.ping()
            with trio.move_on_after(_PONG_BOUND):
                await pong.wait()
                continue
            if self._has_room():
                raise self._loss(f"nothing was heard of it for {_PONG_BOUND:g} s")

    async def _beat_on(self) -> None:
        assert self._beat is not None
        seconds, scope = self._beat
        with scope:
            while not self._stdin_ended and not self.closed.is_set():
                await trio.sleep(seconds)
                if self.lease is None or self.lease.is_valid:
                    self.write(b"\n")

    def _queue(self, data: bytes, done: trio.Event | None) -> bool:
        if self._stdin_ended or self.closed.is_set():
            return False
        for at in range(0, max(len(data), 1), _PIECE):
            piece = data[at : at + _PIECE]
            self._put(bytes([_STDIN]) + piece, done if at + _PIECE >= len(data) else None)
        return True

    def _put(self, frame: bytes, done: trio.Event | None) -> None:
        self._out.append((frame, done))
        self._has_out.set()

    def _fail(self, error: HostError) -> None:
        if not self._opened.is_set():
            self._failure = self._failure or error
        elif not self._aborted and self.lost is None and not self._is_whole:
            self.lost = error

    @property
    def _is_whole(self) -> bool:
        """Whether the exit and all output are known."""
        return self.exit_status is not None and self._all_came

    def _loss(self, reason: str) -> HostError:
        return HostError(
            HostTrouble.DROPPED,
            f"lost the link to a program on host {self._host}: {reason}; look at the pod's events"
            " and at the network",
        )

    def _end(self) -> None:
        """Note that nothing more comes."""
        if self.closed.is_set():
            return
        for item in self.parser.close():
            self._append(item)
        self._fail(self._loss("it was closed"))
        self.stop_beating()
        self._opened.set()
        super()._end()
        while self._out:
            _, done = self._out.popleft()
            if done is not None:
                done.set()


def _host_error(exc: BaseException) -> HostError | None:
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return exc if isinstance(exc, HostError) else None


def _first_reason(exc: BaseException) -> str:
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    if hasattr(exc, "code") and hasattr(exc, "reason"):  # a WebSocketDisconnect
        return exc.reason or f"it was closed ({exc.code})"
    return str(exc) or type(exc).__name__
