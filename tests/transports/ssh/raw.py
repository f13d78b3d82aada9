"""Commands over the connections to a host, without a script of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from sortie.transports.remote.protocol import Item, ScriptOutput
from sortie.transports.ssh.channel import SshChannel
from sortie.transports.ssh.connection_pool import ConnectionPool


class RawOutput(ScriptOutput):
    """Output without messages."""

    def feed(self, number: int, chunk: bytes) -> Iterator[Item]:
        yield number, chunk, None


async def open_raw(connections: ConnectionPool, command: str) -> SshChannel:
    """Run a command; its channel has to be aborted."""
    return await connections.open(command, b"", RawOutput(""))


@asynccontextmanager
async def running(connections: ConnectionPool, command: str) -> AsyncIterator[SshChannel]:
    """Run a command while the block lasts."""
    channel = await open_raw(connections, command)
    try:
        yield channel
    finally:
        channel.abort()


async def output(channel: SshChannel) -> AsyncIterator[tuple[int, bytes]]:
    """Yield what a command writes to stdout (1) and stderr (2)."""
    while (item := await channel.receive()) is not None:
        number, chunk, _ = item
        if chunk:
            yield number, chunk
