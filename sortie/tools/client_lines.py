"""The lines of one client, as they come through the channel: bounded in length and in pace."""

from __future__ import annotations

from collections.abc import AsyncIterator

import trio

from sortie.model.texts import end_of

LINE_LIMIT = 1024 * 1024
"""Bytes of a line: a comment of COMMENT_LIMIT characters, each written as an escape, fits in."""

BURST = 200
"""Lines that are read without a pause."""

PACE = 50.0
"""Lines a second that are read after a burst; more wait in the client."""

END = b"\x04"
"""The line behind the last one of a client."""

_ERRORS_LIMIT = 500


class ClientLineTooLong(Exception):
    """A line of a client has more than LINE_LIMIT bytes."""


class ClientLines:
    """The lines of a client; ``errors`` is the end of what its program says on stderr."""

    def __init__(self, output: AsyncIterator[tuple[int, bytes]]) -> None:
        self._output = output
        self._buffer = bytearray()
        self._seen = 0  # bytes of the buffer that hold no line feed
        self._errors = b""
        self._peeked: list[bytes | None] = []
        self._credit = float(BURST)
        self._credited_at = trio.current_time()

    @property
    def errors(self) -> str:
        """What the program has said on its stderr last."""
        return end_of(self._errors.decode("utf-8", "replace").strip(), _ERRORS_LIMIT)

    async def peek(self) -> bytes | None:
        """Return what ``next`` returns, and leave it for that. Raises what that raises."""
        if not self._peeked:
            self._peeked.append(await self.next())
        return self._peeked[0]

    async def next(self) -> bytes | None:
        """Return the next line without its end, None after the last one.

        Raises ClientLineTooLong, and TransportError where the host is lost.
        """
        if self._peeked:
            return self._peeked.pop()
        await self._wait_for_credit()
        while (end := self._buffer.find(b"\n", self._seen)) < 0:
            self._seen = len(self._buffer)
            if self._seen > LINE_LIMIT:
                raise ClientLineTooLong
            if not await self._read():
                return None
        if end > LINE_LIMIT:
            raise ClientLineTooLong
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._seen = 0
        return None if line == END else line

    async def _read(self) -> bool:
        """Take in what comes; False at the end."""
        async for source, chunk in self._output:
            if source == 1:
                self._buffer += chunk
                return True
            self._errors = (self._errors + chunk)[-_ERRORS_LIMIT:]
        return False

    async def _wait_for_credit(self) -> None:
        now = trio.current_time()
        self._credit = min(BURST, self._credit + (now - self._credited_at) * PACE)
        self._credited_at = now
        self._credit -= 1
        if self._credit < 0:
            await trio.sleep(-self._credit / PACE)
