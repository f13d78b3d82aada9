"""The transports of all hosts: this machine's, and one for each remote host, kept from its first
use on."""

from __future__ import annotations

import os
import platform
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial

import trio

from sortie.config import Settings
from sortie.model import LOCAL, HostError, RunId
from sortie.scheduler import Event
from sortie.scheduler import events as ev
from sortie.telemetry import Publish, facts
from sortie.transports import Transport
from sortie.transports.host_health import HostHealth, MonitoredTransport
from sortie.transports.local import LocalTransport
from sortie.transports.ssh.asyncio_thread import AsyncioThread, open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.launch import Bounds
from sortie.transports.ssh.root_locks import RootLocks
from sortie.transports.ssh.settings import SshSettings
from sortie.transports.ssh.transport import SshTransport, new_nonce


class TransportPool:
    """Gives transports by the name of their host.

    Other settings for SSH make new transports, and runs under way keep theirs.
    ``helper_environ`` is for the programs that help to reach hosts; RunContexts set it.
    """

    def __init__(
        self,
        asyncio_thread: AsyncioThread,
        publish: Publish,
        environ: Mapping[str, str],
        mark: int | None = None,
    ) -> None:
        self.local = LocalTransport(environ.get("PATH", ""), mark=mark)
        self._asyncio_thread = asyncio_thread
        self._publish = publish
        self._agent = environ.get("SSH_AUTH_SOCK")
        self._search_path = environ.get("PATH", os.defpath)
        self._remote: dict[tuple[str, SshSettings, str, float], MonitoredTransport] = {}
        self._unswept: dict[str, set[RunId]] = {}
        self._connections: dict[tuple[str, SshSettings], ConnectionPool] = {}
        self.helper_environ: Mapping[str, str] = {}
        self._locks: dict[tuple[str, SshSettings], RootLocks] = {}
        # Pids and names are not unique: in containers they are the same again and again.
        self._holder = f"pid {os.getpid()} on {platform.node()}, life {new_nonce()[:8]}"
        self._noticed: set[tuple[str, str]] = set()
        self._unsent: list[Event] = []
        self._send: Callable[[Event], object] = self._unsent.append

    def send_events_to(self, listener: Callable[[Event], object]) -> None:
        """Send the events of hosts to a listener, those that came before it too."""
        self._send, unsent = listener, self._unsent
        self._unsent = []
        for event in unsent:
            listener(event)

    def transport(self, host: str, settings: Settings) -> Transport:
        """Return a host's transport."""
        self._mark_wanted(settings)
        if host == LOCAL:
            return self.local
        ssh, delivery = self._ssh_settings(settings), settings.worker.ssh_secret_delivery
        handshake = settings.agent.read_timeout
        key = (host, ssh, delivery, handshake)
        if key not in self._remote:
            if (host, ssh) not in self._connections:
                self._connections[host, ssh] = ConnectionPool(host, ssh, self._asyncio_thread)
            remote = SshTransport(
                host,
                self._connections[host, ssh],
                delivery="inline" if delivery == "inline" else "stdin",
                bounds=Bounds(handshake=handshake),
                notice=partial(self._notice, host),
            )
            unswept = self._unswept.setdefault(host, set())
            hold = self._locks_of(host, ssh, handshake).hold
            self._remote[key] = MonitoredTransport(remote, self._health(), unswept, hold)
        return self._remote[key]

    def _mark_wanted(self, settings: Settings) -> None:
        """Keep the connections of these settings, and no others that nobody uses."""
        ssh, hosts = self._ssh_settings(settings), settings.worker.ssh_hosts
        for (host, used_ssh), connections in self._connections.items():
            wanted = host in hosts and used_ssh == ssh
            if not wanted and (host, used_ssh) in self._locks:
                self._locks[host, used_ssh].release()
            connections.set_wanted(wanted)

    def _locks_of(self, host: str, ssh: SshSettings, handshake: float) -> RootLocks:
        if (host, ssh) not in self._locks:
            self._locks[host, ssh] = RootLocks(
                host,
                self._connections[host, ssh],
                self._holder,
                new_nonce,
                Bounds(handshake=handshake),
            )
        return self._locks[host, ssh]

    def hurry(self) -> None:
        """Give no process any more grace, on whatever host."""
        self.local.hurry()
        for transport in self._remote.values():
            transport.hurry()

    async def sweep(self, run_ids: Collection[RunId], *, grace: float) -> int:
        """End what runs left on this machine; on hosts they end with their lease."""
        return await self.local.sweep(run_ids, grace=grace)

    async def close(self) -> None:
        """Close all connections, within a few seconds."""
        async with trio.open_nursery() as nursery:
            for connections in self._connections.values():
                nursery.start_soon(connections.aclose)

    def _ssh_settings(self, settings: Settings) -> SshSettings:
        worker = settings.worker
        strict = worker.ssh_strict_host_key_checking
        return SshSettings(
            strict="yes" if strict == "yes" else "no" if strict == "no" else "accept-new",
            config=worker.ssh_config,
            known_hosts=worker.ssh_known_hosts,
            identity_files=tuple(worker.ssh_identity_files),
            agent=self._agent,
            search_path=self._search_path,
            environ=self.helper_environ,
        )

    def _notice(self, host: str, message: str) -> None:
        """Publish something about a host, once."""
        if (host, message) not in self._noticed:
            self._noticed.add((host, message))
            self._publish(facts.HostNoticed(host=host, message=message))

    def _health(self) -> HostHealth:
        return HostHealth(troubled=self._troubled, reached=self._reached, reaped=self._reaped)

    def _troubled(self, host: str, error: HostError) -> None:
        self._send(ev.HostTroubled(host, str(error)))

    def _reached(self, host: str) -> None:
        self._send(ev.HostReached(host))

    def _reaped(self, _host: str, count: int) -> None:
        if count:
            self._publish(facts.OrphansReaped(where="host", count=count))


@asynccontextmanager
async def open_transports(
    publish: Publish, environ: Mapping[str, str], mark: int | None = None
) -> AsyncIterator[TransportPool]:
    """Open the pool; its connections are closed in the end.

    ``mark`` is the mark that this process carries.
    """
    async with open_asyncio_thread() as asyncio_thread:
        pool = TransportPool(asyncio_thread, publish, environ, mark)
        try:
            yield pool
        finally:
            await pool.close()
