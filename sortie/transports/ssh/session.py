"""One session of a connection, as asyncssh sees it; everything here is the asyncio thread's."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import asyncssh

from sortie.transports.ssh.errors import loss
from sortie.transports.ssh.protocol import GO
from sortie.transports.ssh.receive_buffer import ReceiveBuffer

CLOSING = 0.1
"""Seconds after a command's exit, or the last word of its watchdog, in which its host may close the
channel before we do anything."""

NEWS = 0.2
"""Seconds after the start of a session in which its first news is told together with it."""

_PIECE = 64 * 1024
"""Bytes that may wait here for the window of the host."""

_EXTENDED = {None: 1, asyncssh.EXTENDED_DATA_STDERR: 2}


class Session(asyncssh.SSHClientSession[bytes]):
    """Puts what comes into a buffer, and writes what trio has to say."""

    def __init__(self, host: str, buffer: ReceiveBuffer) -> None:
        self._host = host
        self._buffer = buffer
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._beat: asyncio.TimerHandle | None = None
        self._closing: asyncio.TimerHandle | None = None
        self._settling: asyncio.TimerHandle | None = None
        self._news = asyncio.Event()
        self._aborted = False
        self._at_eof = False
        self._complete = False

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """Note the channel; from here on the session can be used."""
        self._channel = chan
        # Who sends waits as soon as anything waits for the host's window.
        chan.set_write_buffer_limits(0)

    def session_started(self) -> None:
        """Begin; asyncssh delivers nothing before."""
        if self._buffer.dialogue is not None:
            self.write(self._buffer.dialogue.script)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Pass output on; where trio does not keep up, let the host's window fill."""
        if self._buffer.receive(_EXTENDED[datatype], data):
            self._go()
        else:
            self._news.set()
        dialogue = self._buffer.dialogue
        if dialogue is not None and dialogue.is_complete and self._settling is None:
            # What the login itself has started may hold the channel open for ever.
            loop = asyncio.get_running_loop()
            self._settling = loop.call_later(CLOSING, self._buffer.settle)
        if self._channel is not None and not self._buffer.stalled and self._buffer.overflows:
            self._channel.pause_reading()
            self._buffer.stalled = True
            self.resume()  # trio may have taken it all before it could see that flag

    def resume(self) -> None:
        """Read on, where trio has caught up."""
        if self._channel is not None and self._buffer.stalled and self._buffer.has_room:
            self._buffer.stalled = False
            self._channel.resume_reading()

    async def first_news(self) -> None:
        """Wait a moment for anything but the word that is answered, or the end."""
        timer = asyncio.get_running_loop().call_later(NEWS, self._news.set)
        await self._news.wait()
        timer.cancel()

    def eof_received(self) -> bool:
        """Keep our direction open: it is the lease of what runs there. All output has come."""
        self._complete = True
        return True

    def exit_status_received(self, status: int) -> None:
        """Note the exit status."""
        self._buffer.exit_status = status
        self._exited()

    def exit_signal_received(
        self,
        signal: str,
        core_dumped: bool,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        lang: str,  # noqa: ARG002
    ) -> None:
        """Note the signal that ended the command, without SIG."""
        self._buffer.exit_signal = signal
        self._exited()

    def pause_writing(self) -> None:
        """Note that something waits for the host to read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Note that nothing waits any more."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end, and whether it is the command's."""
        self._channel = None
        self._silence()
        self._writable.set()
        self._news.set()
        for timer in (self._closing, self._settling):
            if timer is not None:
                timer.cancel()
        complete = self._buffer.has_exit and (exc is None or self._complete)
        self._buffer.end(None if complete or self._aborted else loss(exc, self._host))

    def write(self, data: bytes) -> None:
        """Write to the command's stdin; what comes after its end is dropped."""
        if self._channel is None:
            return
        try:
            self._channel.write(data)
        except OSError:  # our direction is closed
            self._silence()

    async def send(self, data: bytes | bytearray | memoryview) -> bool:
        """Write piece by piece, as the host's window takes it; return whether all was taken."""
        view = memoryview(data)
        for at in range(0, max(len(view), 1), _PIECE):
            await self._writable.wait()
            if self._channel is None or self._at_eof:
                return False
            self.write(bytes(view[at : at + _PIECE]))
        return True

    def write_eof(self) -> None:
        """Close our direction behind what was written; who sends stops to wait."""
        self._silence()
        self._at_eof = True
        self._writable.set()
        if self._channel is not None:
            self._channel.write_eof()

    def beat(self, every: float, data: bytes) -> None:
        """Write ``data`` every so many seconds from now on, until our direction is closed."""
        self._silence()
        if self._channel is not None:
            loop = asyncio.get_running_loop()
            self._beat = loop.call_later(every, self._write_beat, every, data)

    def kill(self) -> None:
        """Ask the host to kill the command with its group."""
        if self._channel is not None:
            with suppress(OSError):  # our direction is closed
                self._channel.kill()

    def abort(self) -> None:
        """Close the channel without waiting for anything."""
        self._aborted = True
        self._silence()
        if self._channel is not None:
            self._channel.abort()

    def _go(self) -> None:
        self.write(GO)
        dialogue = self._buffer.dialogue
        if dialogue is not None and dialogue.beat is not None:
            self.beat(dialogue.beat, b"\n")

    def _exited(self) -> None:
        """End the lease; where the host does so itself, a packet is saved."""
        self._buffer.exit()
        self._closing = asyncio.get_running_loop().call_later(CLOSING, self.write_eof)

    def _write_beat(self, every: float, data: bytes) -> None:
        self.beat(every, data)
        self.write(data)

    def _silence(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None
