"""The stdin of a supervised program, which is held up while there is no link and goes on after."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from sortie.transports.remote.supervision import Supervision


class SupervisedStdin(trio.abc.SendStream):
    """Writes what the program reads; ``await_news`` raises where it reads no more.

    At most STDIN_AHEAD bytes are on their way to a program that does not read.
    """

    def __init__(
        self,
        supervision: Supervision,
        write: Callable[[bytes], object],
        await_news: Callable[[], Awaitable[None]],
        is_broken: Callable[[], bool],
        tell: Callable[[], object],
    ) -> None:
        self._supervision = supervision
        self._write = write
        self._await_news = await_news
        self._is_broken = is_broken
        self._tell = tell
        self._closed = False
        self._sending = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write it all, in order; see the port. Cancelled, some of it may have been written."""
        await self._send(memoryview(data))

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the host takes more; raises as ``send_all``."""
        await self._send(memoryview(b""))

    async def aclose(self) -> None:
        """Give the program its end of file, behind what was written."""
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Begin to do so."""
        if not self._closed:
            self._closed = True
            self._write(self._supervision.close_stdin())
            self._tell()

    async def _send(self, data: memoryview) -> None:
        if self._sending:
            raise trio.BusyResourceError("another task is writing to this stdin")
        self._sending = True
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            while True:
                if self._closed:
                    raise trio.ClosedResourceError("this stdin was closed")
                if self._is_broken():
                    raise trio.BrokenResourceError("the program has closed its stdin, or is gone")
                room = self._supervision.stdin_room
                if room:
                    self._write(self._supervision.send(bytes(data[:room])))
                    data = data[room:]
                    if not data:
                        break
                else:
                    await self._await_news()
            await trio.lowlevel.cancel_shielded_checkpoint()
        finally:
            self._sending = False
