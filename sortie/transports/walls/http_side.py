"""One end of a connection that speaks HTTP/1.1: h11 for the bytes, a stream of trio for the way."""

from __future__ import annotations

from typing import Generic, TypeVar

import h11
import trio

from sortie.transports.walls.relay import CHUNK, Traffic

LARGEST_HEAD = 32 * 1024
"""Bytes of a first line with all headers."""

Role = type[h11.CLIENT] | type[h11.SERVER]
"""What this program is to the other end."""


StreamT = TypeVar("StreamT", bound=trio.abc.Stream)


class HttpSide(Generic[StreamT]):
    """Reads and writes the events of h11 on a stream; ``traffic`` is what went through it."""

    def __init__(self, stream: StreamT, role: Role) -> None:
        self.stream = stream
        self.traffic = Traffic()
        self._state = h11.Connection(role, max_incomplete_event_size=LARGEST_HEAD)

    async def next_event(self) -> h11.Event:
        """Return what comes next. Raises h11.RemoteProtocolError for what is not HTTP, and
        trio.BrokenResourceError."""
        while True:
            event = self._state.next_event()
            if not isinstance(event, h11.Event):
                if event is h11.PAUSED:
                    raise h11.RemoteProtocolError("it sent more than was asked for")
                await self._read_more()
            else:
                return event

    async def send(self, event: h11.Event) -> None:
        """Write an event. Raises trio.BrokenResourceError."""
        data = self._state.send(event)
        if data:
            self.traffic.received += len(data)
            await self.stream.send_all(data)

    @property
    def left_over(self) -> bytes:
        """What was read behind the last event."""
        return bytes(self._state.trailing_data[0])

    @property
    def can_answer(self) -> bool:
        """Whether an answer may be given now."""
        return self._state.our_state in (h11.IDLE, h11.SEND_RESPONSE)

    async def _read_more(self) -> None:
        if self._state.they_are_waiting_for_100_continue:
            await self.send(h11.InformationalResponse(status_code=100, headers=[]))
        data = await self.stream.receive_some(CHUNK)
        self.traffic.sent += len(data)
        self._state.receive_data(bytes(data))


AgentSide = HttpSide[trio.SocketStream]
ServerSide = HttpSide[trio.abc.Stream]
