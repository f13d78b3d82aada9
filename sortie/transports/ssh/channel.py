"""The trio side of one session on a remote host: a command with its stdin and its output."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import trio

from sortie.model import HostError, TransportError
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.receive_buffer import ReceiveBuffer

if TYPE_CHECKING:  # Session imports asyncssh, which only the asyncio thread needs
    from sortie.transports.ssh.session import Session
    from sortie.transports.ssh.shared_link import SharedLink


class SessionsFull(TransportError):
    """A connection carries as many sessions as the host allows on one; text as of HostError."""


class Channel:
    """A command that was started on a host.

    Closing the channel does not end the command: it has to watch its stdin, whose end it sees
    when ``write_eof`` or ``abort`` is called, and when the link or this process is gone.
    """

    def __init__(self, thread: AsyncioThread, buffer: ReceiveBuffer, session: Session) -> None:
        self._thread = thread
        self._buffer = buffer
        self._session = session
        self.kept = False  # whoever has opened it leaves it open
        self.carrier: SharedLink | None = None
        self._aborted = False
        self._hushed = False

    @property
    def ended(self) -> bool:
        """Whether nothing more will come; what came before may still wait to be read."""
        return self._aborted or self._buffer.ended

    @property
    def exit_status(self) -> int | None:
        """The command's exit status, 0 to 255; None where there is none (yet)."""
        return self._buffer.exit_status

    @property
    def exit_signal(self) -> str | None:
        """The signal that ended the command, without SIG; None where there is none (yet)."""
        return self._buffer.exit_signal

    @property
    def has_exited(self) -> bool:
        """Whether the command has exited, or never will be heard of again."""
        return self._buffer.exited.is_set()

    @property
    def lost(self) -> HostError | None:
        """Why the link was lost (DROPPED), where that is how the channel ended: before the exit
        or before all output had come.

        Without it, a closed channel has a status or a signal, unless it was aborted.
        """
        return self._buffer.lost

    def write(self, data: bytes) -> None:
        """Write to the command's stdin, in order, without waiting.

        What is written after the end of the command or of its stdin is dropped.
        """
        self._thread.post(self._session.write, data)

    async def send(self, data: bytes | bytearray | memoryview) -> bool:
        """Write as fast as the host takes it; return whether it has taken all.

        It has not where the command or its stdin has ended before. Cancelled, part of it may have
        been written.
        """
        return await self._thread.call(self._session.send, data)

    def write_eof(self) -> None:
        """End the command's stdin after what was written, and stop to beat.

        At the command's exit that happens by itself.
        """
        if not (self._buffer.ended or self._buffer.has_exit):
            self._thread.post(self._session.write_eof)

    def finish(self) -> None:
        """End the command's stdin, and take whatever it still says, whether it is read or not.

        A reader that falls more than BACKLOG behind then loses the rest.
        """
        self._buffer.drains = True
        self.write_eof()
        self._read_on()

    def beat(self, every: float, data: bytes = b"\n") -> None:
        """Write ``data`` every ``every`` seconds from now on, whatever trio is busy with."""
        self._thread.post(self._session.beat, every, data)

    async def output(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield ``(1, chunk)`` for stdout and ``(2, chunk)`` for stderr until the channel is over.

        One task at a time may iterate; another iteration goes on where the last one stopped.
        While nobody iterates, at most 512 KiB wait here, and the command waits to write.
        """
        while not self._aborted:
            ended = self._buffer.ended  # before the look at what is there, or the last is missed
            item = self._buffer.take()
            if item is not None:
                self._read_on()
                yield item
                if self._buffer.chunks:  # or else there is something to wait for
                    await trio.lowlevel.checkpoint()
            elif ended or self._hushed or self.is_over:
                return
            else:
                await self._buffer.waker.wait()

    def hush(self) -> None:
        """Have ``output`` end with what has come."""
        self._hushed = True
        self._buffer.waker.fire()

    def said(self) -> str | None:
        """Return the next word of the dialogue that has come and was not heard, if any."""
        return self._buffer.words.popleft() if self._buffer.words else None

    async def word(self) -> str | None:
        """Wait for the next word of the dialogue; None where no more will come.

        Not while somebody iterates over the output. The word that GO is the answer to may come
        as late as the one behind it.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while True:
            ended = self.ended
            word = self.said()
            if word is not None or ended:
                return word
            await self._buffer.waker.wait()

    async def exited(self) -> None:
        """Wait until the command's exit is known, or never will be; output may still come."""
        await self._buffer.exited.wait()

    @property
    def is_over(self) -> bool:
        """Whether ``over`` would not wait."""
        return self._buffer.over.is_set()

    async def over(self) -> None:
        """Wait until the channel is closed by both sides, or aborted, or the dialogue's last word
        names processes that stay and may hold it open for ever.

        While output waits to be read, it does not close, unless ``finish`` was called.
        """
        await self._buffer.over.wait()

    async def closed(self) -> None:
        """Wait until both sides have closed the channel, whatever has been said on it."""
        await self._buffer.closed.wait()

    def abort(self) -> None:
        """Close the channel at once and drop what is still to come."""
        self._aborted = True
        self._buffer.exited.set()
        self._buffer.over.set()
        self._buffer.closed.set()
        if not self._buffer.ended:
            self._thread.post(self._session.abort)
        self._buffer.waker.fire()

    def kill(self) -> None:
        """Have the host kill the command; for one that does not watch its stdin."""
        if not self._buffer.ended:
            self._thread.post(self._session.kill)

    def _read_on(self) -> None:
        if self._buffer.stalled and self._buffer.has_room:
            self._thread.post(self._session.resume)
