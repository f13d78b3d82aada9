"""One session on a remote host: a command with its stdin and its output.

Rule: asyncssh calls on the asyncio thread, and all other code in trio; each thread writes only the
fields said to be its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import asyncssh

from sortie.transports.remote.channel import Channel
from sortie.transports.remote.protocol import Item, ScriptOutput
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.errors import loss

# Bytes that may still wait for trio when more are read; as much as PAUSE_ABOVE is on its way then
# (asyncssh's window).
RESUME_BELOW = 64 * 1024

_SETTLE_AFTER = 0.1  # seconds after a command's exit, or the last message of its watchdog
_PIECE = 64 * 1024  # bytes of a stdin that may wait here for the window of the host
_STREAMS = {None: 1, asyncssh.EXTENDED_DATA_STDERR: 2}


class SshChannel(Channel, asyncssh.SSHClientSession[bytes]):
    """A command on a host, whose stdin begins with ``text``.

    ``when_closed`` is called in trio, once, when its session is closed. ``_received`` and
    ``_dropped`` are the asyncio thread's.
    """

    def __init__(
        self,
        thread: AsyncioThread,
        host: str,
        text: bytes,
        parser: ScriptOutput,
        when_closed: Callable[[], object],
    ) -> None:
        super().__init__(parser)
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
        self._paused = False
        self._wakes = False  # a wake-up is on its way
        # The trio thread's:
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

    def stop_beating(self) -> None:
        """Write no more lines by itself."""
        self._thread.post(self._stop_beating)

    def kill(self) -> None:
        """Ask the host to kill the command; for one that does not watch its stdin."""
        self._thread.post(self._kill)

    def abort(self) -> None:
        """Close the channel at once and drop what is still to come."""
        self._aborted = True
        if not self.closed.is_set():
            self._thread.post(self._abort)
            self._end()

    def _resume_reading(self) -> None:
        if self._paused and self._has_room(RESUME_BELOW):
            self._thread.post(self._resume)

    def _free(self) -> None:
        """Note that the session is closed, or was never opened."""
        when_closed, self._when_closed = self._when_closed, _nothing
        when_closed()

    def _wake(self) -> None:
        self._wakes = False  # before anything is taken, so that nothing is missed
        super()._wake()

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
        if self._ssh is not None and not self._paused and not self._has_room():
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

    def _append(self, item: Item) -> bool:
        kept = super()._append(item)
        if kept and not self._wakes:  # many items make one wake-up
            self._wakes = True
            self._thread.to_trio(self._wake)
        return kept

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
        if self._ssh is not None and self._paused and self._has_room(RESUME_BELOW):
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
        if self.lease is None or self.lease.is_valid:
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


def _nothing() -> None:
    pass
