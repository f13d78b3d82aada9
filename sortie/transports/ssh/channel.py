"""The trio side of one session on a remote host: a command with its stdin and its output."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import trio

from sortie.model import HostError, TransportError
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.receive_buffer import Inbox

if TYPE_CHECKING:  # it imports asyncssh, which only the asyncio thread needs
    from sortie.transports.ssh.session import Session


class SessionsFull(TransportError):
    """A connection carries as many sessions as the host allows on one; text as of HostError."""


class Channel:
    """A command that was started on a host.

    Closing the channel does not end the command: it has to watch its stdin, whose end it sees
    when ``write_eof`` or ``abort`` is called, and when the link or this process is gone.
    """

    def __init__(self, bridge: AsyncioThread, inbox: Inbox, session: Session) -> None:
        self._bridge = bridge
        self._inbox = inbox
        self._session = session
        self._aborted = False
        self._hushed = False

    @property
    def ended(self) -> bool:
        """Whether nothing more will come; what came before may still wait to be read."""
        return self._aborted or self._inbox.ended

    @property
    def exit_status(self) -> int | None:
        """The command's exit status, 0 to 255; None where there is none (yet)."""
        return self._inbox.exit_status

    @property
    def exit_signal(self) -> str | None:
        """The signal that ended the command, without SIG; None where there is none (yet)."""
        return self._inbox.exit_signal

    @property
    def has_exited(self) -> bool:
        """Whether the command has exited, or never will be heard of again."""
        return self._inbox.exited.is_set()

    @property
    def lost(self) -> HostError | None:
        """Why the link was lost (DROPPED), where that is how the channel ended: before the exit
        or before all output had come.

        Without it, a closed channel has a status or a signal, unless it was aborted.
        """
        return self._inbox.lost

    def write(self, data: bytes) -> None:
        """Write to the command's stdin, in order, without waiting.

        What is written after the end of the command or of its stdin is dropped.
        """
        self._bridge.post(self._session.write, data)

    async def send(self, data: bytes | bytearray | memoryview) -> bool:
        """Write as fast as the host takes it; return whether it has taken all.

        It has not where the command or its stdin has ended before. Cancelled, part of it may have
        been written.
        """
        return await self._bridge.call(self._session.send, data)

    def write_eof(self) -> None:
        """End the command's stdin after what was written, and stop to beat.

        At the command's exit that happens by itself.
        """
        if not (self._inbox.ended or self._inbox.has_exit):
            self._bridge.post(self._session.write_eof)

    def finish(self) -> None:
        """End the command's stdin, and take whatever it still says, whether it is read or not.

        A reader that falls more than BACKLOG behind then loses the rest.
        """
        self._inbox.drains = True
        self.write_eof()
        self._read_on()

    def beat(self, every: float, data: bytes = b"\n") -> None:
        """Write ``data`` every ``every`` seconds from now on, whatever trio is busy with."""
        self._bridge.post(self._session.beat, every, data)

    async def output(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield ``(1, chunk)`` for stdout and ``(2, chunk)`` for stderr until the channel is over.

        One task at a time may iterate; another iteration goes on where the last one stopped.
        While nobody iterates, at most 512 KiB wait here, and the command waits to write.
        """
        while not self._aborted:
            ended = self._inbox.ended  # before the look at what is there, or the last is missed
            item = self._inbox.take()
            if item is not None:
                self._read_on()
                yield item
                if self._inbox.chunks:  # or else there is something to wait for
                    await trio.lowlevel.checkpoint()
            elif ended or self._hushed or self.is_over:
                return
            else:
                await self._inbox.waker.wait()

    def hush(self) -> None:
        """Have ``output`` end with what has come."""
        self._hushed = True
        self._inbox.waker.fire()

    def said(self) -> str | None:
        """Return the next word of the dialogue that has come and was not heard, if any."""
        return self._inbox.words.popleft() if self._inbox.words else None

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
            await self._inbox.waker.wait()

    async def exited(self) -> None:
        """Wait until the command's exit is known, or never will be; output may still come."""
        await self._inbox.exited.wait()

    @property
    def is_over(self) -> bool:
        """Whether ``over`` would not wait."""
        return self._inbox.over.is_set()

    async def over(self) -> None:
        """Wait until the channel is closed by both sides, or aborted, or the dialogue's last word
        names processes that stay and may hold it open for ever.

        While output waits to be read, it does not close, unless ``finish`` was called.
        """
        await self._inbox.over.wait()

    async def closed(self) -> None:
        """Wait until both sides have closed the channel, whatever has been said on it."""
        await self._inbox.closed.wait()

    def abort(self) -> None:
        """Close the channel at once and drop what is still to come."""
        self._aborted = True
        self._inbox.exited.set()
        self._inbox.over.set()
        self._inbox.closed.set()
        if not self._inbox.ended:
            self._bridge.post(self._session.abort)
        self._inbox.waker.fire()

    def kill(self) -> None:
        """Have the host kill the command; for one that does not watch its stdin."""
        if not self._inbox.ended:
            self._bridge.post(self._session.kill)

    def _read_on(self) -> None:
        if self._inbox.stalled and self._inbox.has_room:
            self._bridge.post(self._session.resume)
