"""The stdin of a program on a host that can be written while the program lives.

The channel of the program itself carries its lease, so its stdin has a session of its own, in
which ``cat`` writes to a FIFO that the program has open. The FIFO has no name when the program
begins. The ``cat`` belongs to the program's tree, so its end is as certain as the program's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from sortie.model import TransportError
from sortie.transports.ssh.channel import Channel
from sortie.transports.ssh.connections import Connections
from sortie.transports.ssh.dialogue import HERE, Dialogue
from sortie.transports.ssh.launch import Bounds, nonsense, silent_shell
from sortie.transports.ssh.login_limit import Start, starting
from sortie.transports.ssh.scripts import SHELL, Launch, stdin_script


class RemoteStdin(trio.abc.SendStream):
    """Writes to the channel whose bytes the program reads; ``program`` is the program's own.

    The host takes up to 2 MiB that the program has not read (the window of its sshd); beyond that
    ``send_all`` waits, with 64 KiB in memory here.
    """

    def __init__(self, channel: Channel, program: Channel) -> None:
        self._channel = channel
        self._program = program
        self._closed = False
        self._sending = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write it all, in order; cancelled, some of it may have been written.

        Raises trio.BrokenResourceError where the program has closed its stdin (which may be known
        some writes later only), has exited or was lost; trio.ClosedResourceError after aclose.
        """
        await self._send(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the host takes more; raises as ``send_all``."""
        await self._send(b"")

    async def aclose(self) -> None:
        """Give the program its end of file, behind what was written."""
        if not self._closed:
            self._closed = True
            self._channel.write_eof()
        await trio.lowlevel.checkpoint()

    async def _send(self, data: bytes | bytearray | memoryview) -> None:
        if self._sending:
            raise trio.BusyResourceError("another task is writing to this stdin")
        self._check()
        self._sending = True
        try:
            sent = await self._channel.send(data)
        finally:
            self._sending = False
        self._check(lost=not sent)

    def _check(self, *, lost: bool = False) -> None:
        if self._closed:
            raise trio.ClosedResourceError("this stdin was closed")
        if lost or self._program.has_exited:
            raise trio.BrokenResourceError("the program has closed its stdin, or is gone")


@asynccontextmanager
async def stdin_channel(
    host: str, connections: Connections, launch: Launch, fifo: str, nonce: str, bounds: Bounds
) -> AsyncIterator[Channel]:
    """Give a channel whose stdin is passed on to a launch's FIFO. Raises HostError."""
    while True:
        async with (
            starting(connections.starts) as start,
            connections.channel(
                SHELL, Dialogue(stdin_script(nonce, launch, fifo), nonce)
            ) as channel,
        ):
            start.opened()
            if await _begun(host, channel, start, bounds):
                yield channel
                return


async def _begun(host: str, channel: Channel, start: Start, bounds: Bounds) -> bool:
    """Wait until the shell is there and passes on; False where it is to be tried again."""
    with trio.move_on_after(bounds.handshake):
        for expected in (HERE, "open"):
            word = await channel.word()
            if word is None:
                raise channel.lost or TransportError(
                    f"the shell of host {host} ended before it could pass on a program's stdin"
                    f" (exit {channel.exit_status})"
                )
            if word != expected:
                raise nonsense(host)
            start.succeeded(bounds.handshake)
        return True
    channel.kill()
    error = silent_shell(host, bounds.handshake)
    if start.was_silent(error):
        return False
    raise error
