"""The transports of all hosts: this machine's, and those of remote hosts once one is used."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from sortie.config.settings import Settings
from sortie.model import LOCAL, HostError, RunId
from sortie.scheduler import Event
from sortie.scheduler import events as ev
from sortie.telemetry import Publish, facts
from sortie.transports import Transport
from sortie.transports.host_health import HostHealth
from sortie.transports.local import IsolationInForce, LocalTransport

if TYPE_CHECKING:
    from sortie.daemon.pod_transports import PodTransports
    from sortie.daemon.remote_transports import RemoteTransports
    from sortie.daemon.ssh_connections import SshConnections


class RemoteHosts:
    """The connections to remote hosts that the workflows of a process share: there once one of
    them uses a host; to be closed."""

    def __init__(self) -> None:
        self._connections: SshConnections | None = None

    def connections(self) -> SshConnections:
        """Return the connections."""
        if self._connections is None:
            from sortie.daemon.ssh_connections import SshConnections

            self._connections = SshConnections()
        return self._connections

    async def aclose(self, until: float = math.inf) -> None:
        """Close all connections, within a few seconds, and by a time."""
        if self._connections is not None:
            await self._connections.aclose(until)


class TransportPool:
    """Gives transports by the name of their host; what SSH needs is there from its first use on.

    ``helper_environ`` is for the programs that help to reach hosts, and ``workflow`` is the name
    that pods have as a label; RunContexts set both.
    ``close_until`` is when closing has to be over.
    """

    def __init__(
        self,
        publish: Publish,
        environ: Mapping[str, str],
        isolation: IsolationInForce | None = None,
        local: LocalTransport | None = None,
        hosts: RemoteHosts | None = None,
    ) -> None:
        self._isolation = isolation or IsolationInForce()
        self._shares_local = local is not None
        self._shares_hosts = hosts is not None
        self._hosts = hosts or RemoteHosts()
        self.local = local or local_transport(environ, self._isolation)
        self.publish = publish
        self._environ = environ
        self._remote: RemoteTransports | None = None
        self._pods: PodTransports | None = None
        self._has_remote = trio.Event()
        self.close_until = math.inf
        self.helper_environ: Mapping[str, str] = {}
        self.workflow = ""
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
        if host != LOCAL and settings.worker.kubernetes is not None:
            return self._pods_of_hosts().transport(host, settings)
        if self._remote is None:
            if host == LOCAL:
                return self.local
            from sortie.daemon.remote_transports import RemoteTransports

            self._remote = RemoteTransports(
                self.publish, self._environ, self._health, self._hosts.connections()
            )
            self._has_remote.set()
        self._remote.helper_environ = self.helper_environ
        self._remote.mark_wanted(settings)
        return self.local if host == LOCAL else self._remote.transport(host, settings)

    def _pods_of_hosts(self) -> PodTransports:
        if self._pods is None:
            from sortie.daemon.pod_transports import PodTransports

            self._pods = PodTransports(self.publish, self._health, self.workflow)
        return self._pods

    def host_isolation(self) -> tuple[str, ...]:
        """Return a sentence for each host that was used: what ends the processes of runs there."""
        remote = () if self._remote is None else self._remote.isolation_sentences()
        pods = () if self._pods is None else self._pods.isolation_sentences()
        return (f"host {LOCAL}: {self._isolation.detail}", *remote, *pods)

    def use(self, settings: Settings) -> None:
        """Let connections be those of other settings; those of hosts that are dropped are closed
        once no run is there any more. Pods that are to wait for an issue are made from then on."""
        if self._remote is not None:
            self._remote.helper_environ = self.helper_environ
            self._remote.mark_wanted(settings)
        pods = settings.worker.kubernetes
        if self._pods is not None or (pods is not None and pods.warm):
            self._pods_of_hosts().use(settings)

    async def close_unwanted(self, is_busy: Callable[[str], bool]) -> None:
        """Close what is dropped, until cancelled; ``is_busy`` tells whether a host has runs."""
        await self._has_remote.wait()
        assert self._remote is not None
        await self._remote.close_unwanted(is_busy)

    def hurry(self) -> None:
        """Give no process any more grace, on whatever host."""
        self.local.hurry()
        if self._remote is not None:
            self._remote.hurry()
        if self._pods is not None:
            self._pods.hurry()

    async def sweep(self, run_ids: Collection[RunId], *, grace: float) -> int:
        """End what runs left on this machine; on hosts they end with their lease."""
        return await self.local.sweep(run_ids, grace=grace)

    async def close(self) -> None:
        """Close all connections, within a few seconds, and leave no cgroup behind."""
        async with trio.open_nursery() as nursery:
            if not self._shares_local:
                nursery.start_soon(self.local.close)
            if self._remote is not None and self._shares_hosts:
                nursery.start_soon(self._remote.leave, self.close_until)
            elif self._remote is not None:  # what is held on hosts ends with the connections
                nursery.start_soon(self._hosts.aclose, self.close_until)
            if self._pods is not None:
                nursery.start_soon(self._pods.aclose, self.close_until)

    def _health(self) -> HostHealth:
        return HostHealth(troubled=self._troubled, reached=self._reached, reaped=self._reaped)

    def _troubled(self, host: str, error: HostError) -> None:
        self._send(ev.HostTroubled(host, str(error), error.retry_after))

    def _reached(self, host: str) -> None:
        self._send(ev.HostReached(host))

    def _reaped(self, _host: str, count: int) -> None:
        if count:
            self.publish(facts.OrphansReaped(where="host", count=count))


def local_transport(environ: Mapping[str, str], isolation: IsolationInForce) -> LocalTransport:
    """Return the transport of this machine, of which a process has one."""
    return LocalTransport(
        environ.get("PATH", ""),
        mark=isolation.mark,
        groups=isolation.groups,
        server=isolation.server,
    )


@asynccontextmanager
async def open_transports(
    publish: Publish,
    environ: Mapping[str, str],
    isolation: IsolationInForce | None = None,
    local: LocalTransport | None = None,
    hosts: RemoteHosts | None = None,
) -> AsyncIterator[TransportPool]:
    """Open the pool; its connections are closed in the end.

    ``isolation`` is what ends processes on this machine. A pool that is given the transport of
    this machine, or the connections to hosts, shares them with others, and does not close them.
    """
    pool = TransportPool(publish, environ, isolation, local, hosts)
    try:
        yield pool
    finally:
        await pool.close()
