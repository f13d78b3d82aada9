"""One session of a connection, as asyncssh sees it; everything here is the asyncio thread's."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import asyncssh

from sortie.transports.ssh.inbox import HIGH, LOW, Inbox
from sortie.transports.ssh.troubles import loss

_EXTENDED = {None: 1, asyncssh.EXTENDED_DATA_STDERR: 2}


class Session(asyncssh.SSHClientSession[bytes]):
    """Puts what comes into an inbox, and writes what trio has to say."""

    def __init__(self, host: str, inbox: Inbox) -> None:
        self._host = host
        self._inbox = inbox
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._beat: asyncio.TimerHandle | None = None
        self._aborted = False

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """Note the channel; from here on the session can be used."""
        self._channel = chan
        # Whatever waits for the host's window counts as not drained.
        chan.set_write_buffer_limits(0)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Pass output on; where trio does not keep up, let the host's window fill."""
        self._inbox.add(_EXTENDED[datatype], data)
        if self._channel is not None and not self._inbox.stalled and self._inbox.waiting > HIGH:
            self._channel.pause_reading()
            self._inbox.stalled = True
            self.resume()  # trio may have taken it all before it could see that flag

    def resume(self) -> None:
        """Read on, where trio has caught up."""
        if self._channel is not None and self._inbox.stalled and self._inbox.waiting <= LOW:
            self._inbox.stalled = False
            self._channel.resume_reading()

    def eof_received(self) -> bool:
        """Keep our direction open: it is the lease of what runs there."""
        return True

    def exit_status_received(self, status: int) -> None:
        """Note the exit status."""
        self._inbox.exit_status = status
        self._inbox.exit()

    def exit_signal_received(
        self,
        signal: str,
        core_dumped: bool,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        lang: str,  # noqa: ARG002
    ) -> None:
        """Note the signal that ended the command, without SIG."""
        self._inbox.exit_signal = signal
        self._inbox.exit()

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
        inbox = self._inbox
        exited = inbox.exit_status is not None or inbox.exit_signal is not None
        inbox.end(None if exited or self._aborted else loss(exc, self._host))

    def write(self, data: bytes) -> None:
        """Write to the command's stdin; what comes after its end is dropped."""
        if self._channel is None:
            return
        try:
            self._channel.write(data)
        except OSError:  # our direction is closed
            self._silence()

    async def drain(self) -> None:
        """Wait until all that was written is on its way, or never will be."""
        await self._writable.wait()

    def write_eof(self) -> None:
        """Close our direction: the lease ends."""
        self._silence()
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

    def _write_beat(self, every: float, data: bytes) -> None:
        self.beat(every, data)
        self.write(data)

    def _silence(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None
