"""One session on a remote host: a command with its stdin and its output.

Rule 1: asyncssh calls on the asyncio thread, and all other code in trio; each thread writes only
the fields said to be its own. Rule 2: items are taken in the order in which they came, and all of
them before the end is seen.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import asyncssh
import trio

from sortie.model import HostError
from sortie.transports.remote.protocol import Item, ScriptOutput
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.errors import loss

# Bytes that may wait for trio in one channel; as much again may be on its way (asyncssh's window).
PAUSE_ABOVE = 256 * 1024
RESUME_BELOW = 64 * 1024

BACKLOG = 1 << 20
"""Bytes that wait at most where the host is not held back; what comes then is dropped."""

_SETTLE_AFTER = 0.1  # seconds after a command's exit, or the last message of its watchdog
_MESSAGE_COST = 256  # bytes
_PIECE = 64 * 1024  # bytes of a stdin that may wait here for the window of the host
_STREAMS = {None: 1, asyncssh.EXTENDED_DATA_STDERR: 2}


class Channel(asyncssh.SSHClientSession[bytes]):
    """A command on a host, whose stdin begins with ``text``.

    ``when_closed`` is called in trio, once, when its session is closed.

    Closing the channel does not end the command: the command has to watch its stdin, which ends
    with ``write_eof`` or ``abort``, with the connection, and with this process.
    """

    def __init__(
        self,
        thread: AsyncioThread,
        host: str,
        text: bytes,
        parser: ScriptOutput,
        when_closed: Callable[[], object],
    ) -> None:
        self.parser = parser
        self.exit_status: int | None = None
        """The command's exit status, 0 to 255; None where there is none (yet)."""
        self.exit_signal: str | None = None
        """The signal that ended the command, without SIG; None where there is none (yet)."""
        self.lost: HostError | None = None
        """Why the link was lost (DROPPED) before the exit, or before all output had come.

        Without it, a closed channel has a status or a signal, unless it was aborted.
        """
        self.carrier: object = None
        """The connection that carries it."""
        self._thread = thread
        self._host = host
        self._text = text
        # The asyncio thread's:
        self._ssh: asyncssh.SSHClientChannel[bytes] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._stdin_ended = False
        self._all_came = False
        self._beat: asyncio.TimerHandle | None = None
        self._settling: asyncio.TimerHandle | None = None
        self._items: deque[Item] = deque()  # appended there, and taken in trio
        self._received = 0
        self._paused = False
        self._dropped = False  # so all that follows is dropped, too
        self._wakes = False  # a wake-up is on its way
        # The trio thread's:
        self._taken = 0
        self._drains = False
        self._aborted = False
        self.exited = trio.Event()
        """The command has exited, or nothing more will be heard of it; output may still come."""
        self.closed = trio.Event()
        """Both sides have closed the channel; what came before may still wait to be read."""
        self.over = trio.Event()
        """It is closed, or the watchdog has said its last message: what holds the channel open may
        do so for ever. It does not close while output waits to be read, unless ``finish`` was
        called."""
        self._news = trio.Event()
        self._when_closed = when_closed

    # Called in trio

    def write(self, data: bytes) -> None:
        """Write to the command's stdin, in order, without waiting.

        What is written after the end of the command or of its stdin is dropped.
        """
        self._thread.post(self._write, data)

    async def send(self, data: bytes | bytearray | memoryview) -> bool:
        """Write as fast as the host takes it; return whether it has taken all.

        It has not where the command or its stdin has ended before. Cancelled, part of it may have
        been written.
        """
        return await self._thread.call(self._send, data)

    def write_eof(self) -> None:
        """End the command's stdin after what was written. At its exit that happens by itself."""
        self._thread.post(self._write_eof)

    def finish(self) -> None:
        """End the command's stdin, and take all that it still says, whether that is read or not.

        A reader that falls more than BACKLOG behind then loses the rest.
        """
        self._drains = True
        self._thread.post(self._write_eof)
        self._thread.post(self._resume)

    def beat(self, seconds: float, first: bytes = b"") -> None:
        """Write ``first``, and then a line every so many seconds, whatever trio is busy with."""
        self._thread.post(self._write_beat, seconds, first)

    def kill(self) -> None:
        """Ask the host to kill the command; for one that does not watch its stdin."""
        self._thread.post(self._kill)

    def abort(self) -> None:
        """Close the channel at once and drop what is still to come."""
        self._aborted = True
        if not self.closed.is_set():
            self._thread.post(self._abort)
            self._end()

    def conclude(self) -> None:
        """Have ``receive`` return None behind what has come."""
        self.over.set()
        self._wake()

    async def receive(self) -> Item | None:
        """Return the next item that has come; None where the channel is over.

        For one task at a time. While nobody receives, at most 512 KiB wait here, and the command
        waits to write.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while True:
            # Before the look at what is there, or the last item could be missed.
            over, news = self.over.is_set(), self._news
            item = self.take()
            if item is not None:
                await trio.lowlevel.cancel_shielded_checkpoint()
                return item
            if over:
                return None
            await news.wait()

    def take(self) -> Item | None:
        """Return the next item without waiting, if there is one."""
        if self._aborted or not self._items:
            return None
        item = self._items.popleft()
        self._taken += _size(item)
        if self._paused and self._has_room():
            self._thread.post(self._resume)
        return item

    @property
    def is_empty(self) -> bool:
        """Whether all that has come was taken."""
        return not self._items

    def _free(self) -> None:
        """Note that the session is closed, or was never opened."""
        when_closed, self._when_closed = self._when_closed, _nothing
        when_closed()

    def _end(self) -> None:
        for event in (self.exited, self.over, self.closed):
            event.set()
        self._wake()

    def _wake(self) -> None:
        self._wakes = False  # before anything is taken, so that nothing is missed
        self._news.set()
        self._news = trio.Event()

    # Called on the asyncio thread

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """Note asyncssh's channel; from here on the session can be used."""
        self._ssh = chan
        # ``send`` waits as soon as anything waits for the host's window.
        chan.set_write_buffer_limits(0)

    def session_started(self) -> None:
        """Begin; asyncssh delivers nothing before."""
        if self._aborted:
            self._abort()
        else:
            self._write(self._text)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Pass output on; where trio does not keep up, let the host's window fill."""
        for item in self.parser.feed(_STREAMS[datatype], data):
            self._append(item)
        if self.parser.gone:  # these may hold the channel open for ever
            self._thread.to_trio(self.conclude)
        elif self.parser.is_complete:
            self._settle_soon()
        if self._ssh is not None and not self._paused and not self._has_room(PAUSE_ABOVE):
            self._ssh.pause_reading()
            self._paused = True
            self._resume()  # trio may have taken it all before it could see that flag

    def eof_received(self) -> bool:
        """Keep our direction open: it is the lease of what runs there. All output has come."""
        self._all_came = True
        return True

    def exit_status_received(self, status: int) -> None:
        """Note the exit status."""
        self.exit_status = status
        self._note_exit()

    def exit_signal_received(
        self,
        signal: str,
        core_dumped: bool,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        lang: str,  # noqa: ARG002
    ) -> None:
        """Note the signal that ended the command, without SIG."""
        self.exit_signal = signal
        self._note_exit()

    def pause_writing(self) -> None:
        """Note that something waits for the host to read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Note that nothing waits any more."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end, and whether it is the command's."""
        self._ssh = None
        self._stop_beating()
        if self._settling is not None:
            self._settling.cancel()
        self._writable.set()
        for item in self.parser.close():
            self._append(item)
        has_exit = self.exit_status is not None or self.exit_signal is not None
        if not self._aborted and not (has_exit and (exc is None or self._all_came)):
            self.lost = loss(exc, self._host)
        self._thread.to_trio(self._end)
        self._thread.to_trio(self._free)

    def opening_done(self, opening: asyncio.Future[None]) -> None:
        """Note that there is a session, or none."""
        if opening.cancelled() or opening.exception() is not None:
            self._thread.to_trio(self._free)

    def _append(self, item: Item) -> None:
        self._dropped |= self._drains and self._received - self._taken >= BACKLOG
        if _size(item) and not self._dropped:
            self._items.append(item)
            self._received += _size(item)
            if not self._wakes:  # many items make one wake-up
                self._wakes = True
                self._thread.to_trio(self._wake)

    def _has_room(self, limit: int = RESUME_BELOW) -> bool:
        return self._drains or self._received - self._taken <= limit

    def _note_exit(self) -> None:
        self._thread.to_trio(self.exited.set)
        self._settle_soon()

    def _settle_soon(self) -> None:
        """End the lease, and what trio waits for, unless the host closes the channel by itself."""
        if self._settling is not None:
            self._settling.cancel()
        self._settling = self._thread.later(_SETTLE_AFTER, self._settle)

    def _settle(self) -> None:
        self._write_eof()
        if self.parser.is_complete:
            self._thread.to_trio(self.conclude)

    def _resume(self) -> None:
        if self._ssh is not None and self._paused and self._has_room():
            self._paused = False
            self._ssh.resume_reading()

    def _write(self, data: bytes) -> None:
        if self._ssh is not None and not self._stdin_ended:
            with suppress(OSError):  # our direction is closed
                self._ssh.write(data)

    async def _send(self, data: bytes | bytearray | memoryview) -> bool:
        view = memoryview(data)
        for at in range(0, max(len(view), 1), _PIECE):
            await self._writable.wait()
            if self._ssh is None or self._stdin_ended:
                return False
            self._write(bytes(view[at : at + _PIECE]))
        return True

    def _write_eof(self) -> None:
        self._stop_beating()
        self._stdin_ended = True
        self._writable.set()
        if self._ssh is not None:
            self._ssh.write_eof()

    def _write_beat(self, seconds: float, line: bytes = b"\n") -> None:
        self._write(line)
        if self._ssh is not None and not self._stdin_ended:
            self._beat = self._thread.later(seconds, lambda: self._write_beat(seconds))

    def _stop_beating(self) -> None:
        if self._beat is not None:
            self._beat.cancel()

    def _kill(self) -> None:
        if self._ssh is not None:
            with suppress(OSError):  # our direction is closed
                self._ssh.kill()

    def _abort(self) -> None:
        self._stop_beating()
        if self._ssh is not None:
            self._ssh.abort()


def _size(item: Item) -> int:
    """Return how much memory an item takes, about."""
    return len(item[1]) + (0 if item[2] is None else _MESSAGE_COST + len(item[2]))


def _nothing() -> None:
    pass
