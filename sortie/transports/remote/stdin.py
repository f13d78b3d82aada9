"""The stdin of a program on a host that can be written while the program lives.

The channel of the program itself carries its lease, so its stdin has a session of its own, in
which ``cat`` writes to a FIFO that the program has open. The FIFO has no name when the program
begins. The ``cat`` belongs to the program's tree, so its end is as certain as the program's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import trio

from sortie.transports.remote.channel import Channel
from sortie.transports.remote.launch_scripts import stdin_script
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.shell import Shell


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
        if lost or self._program.exited.is_set():
            raise trio.BrokenResourceError("the program has closed its stdin, or is gone")


@asynccontextmanager
async def open_stdin(
    shell: Shell, launch: RemoteLaunch, fifo: str, program: Channel, init: int
) -> AsyncIterator[RemoteStdin]:
    """Pass on what is written to a launch's FIFO while the block lasts; ``init`` is as for the
    script. Raises HostError."""
    async with shell.running(
        "pass on a program's stdin", partial(stdin_script, launch=launch, fifo=fifo, init=init)
    ) as script:
        if not script.begun:
            raise script.silence()
        # It ends with the program, to whose tree it belongs, but for that of a container.
        script.is_over = launch.command.container is None
        yield RemoteStdin(script.channel, program)
