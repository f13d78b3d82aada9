"""Where the checks run: this machine, or a host over SSH."""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache

import trio
from msgspec import Struct

from sortie.model import LOCAL, TransportError
from sortie.transports import Command, Transport
from sortie.transports.local import LocalTransport, become_subreaper, plain_fork_server
from sortie.transports.local.fork_client import ForkServer
from sortie.transports.ssh.settings import SshSettings

_REMOVAL = 30.0
_SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"


class AgentHost(Struct, frozen=True):
    """A host; ``transport`` makes a transport of its own for each check, one after the other."""

    host: str
    transport: Callable[[], Transport]


def this_machine() -> AgentHost:
    """Return this machine; from now on this process adopts orphans, as the daemon does."""
    become_subreaper()
    path, server = os.environ.get("PATH", os.defpath), _fork_server()
    return AgentHost(LOCAL, lambda: LocalTransport(path, server=server))


@cache
def _fork_server() -> ForkServer | None:
    """Return the one fork server of this process: to a transport with another one, it would be a
    process that some program has left behind."""
    return plain_fork_server()


@asynccontextmanager
async def open_host(host: str, settings: SshSettings) -> AsyncIterator[AgentHost]:
    """Reach a host over SSH while the block lasts."""
    from sortie.transports.remote.transport import ShellTransport
    from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
    from sortie.transports.ssh.connection_pool import ConnectionPool

    async with open_asyncio_thread() as thread:
        connections = ConnectionPool(host, settings, thread)
        try:
            yield AgentHost(host, lambda: ShellTransport(host, connections))
        finally:
            await connections.aclose()


@asynccontextmanager
async def temporary_directory(transport: Transport) -> AsyncIterator[str]:
    """Have a new directory on a host while the block lasts. Raises TransportError."""
    path = await _output(transport, 'mktemp -d "${TMPDIR:-/tmp}/sortie-agent-XXXXXXXX"')
    try:
        yield path
    finally:
        # It lies in a directory of everybody's, which is no root that a transport would trust.
        with trio.move_on_after(_REMOVAL, shield=True):
            await _output(transport, f"rm -rf -- {shlex.quote(path)} && echo /")


async def _output(transport: Transport, script: str) -> str:
    command = Command(argv=("/bin/sh", "-c", script), cwd="/", env={"PATH": _SEARCH_PATH})
    said = bytearray()
    async with transport.process(command) as process:
        async for source, chunk in process.output():
            said += chunk if source == 1 else b""
        end = await process.wait()
    text = said.decode(errors="replace").strip()
    if end.status != 0 or not text.startswith("/"):
        raise TransportError(f"no temporary directory could be made on {transport.host}: {text}")
    return text
