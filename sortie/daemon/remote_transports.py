"""The transports of remote hosts, one for each from its first use on, over SSH."""

from __future__ import annotations

import math
import os
import platform
import secrets
from collections.abc import Callable, Mapping
from functools import partial

import trio

from sortie.config.settings import Isolation, Settings
from sortie.daemon.ssh_connections import HostKey, SshConnections
from sortie.model import HostError, RunId
from sortie.telemetry import Publish, facts
from sortie.transports import Transport
from sortie.transports.host_health import HostHealth, MonitoredTransport
from sortie.transports.lost_links import Links
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport, new_nonce
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.root_locks import RootLocks
from sortie.transports.ssh.settings import SshSettings

_RELEASE_BOUND = 1.0  # seconds; a workflow may end with the process, which closes all
_CLOSED_EVERY = 1.0
"""Seconds between two looks whether a host that no setting names any more has no run left."""


_Reached = tuple[str, SshSettings, str, float, Isolation, float]
"""A host, and all settings of which others make another transport."""


class RemoteTransports:
    """Gives the transports of hosts by their names; to be closed.

    Other settings for SSH make new transports, and runs under way keep theirs. ``helper_environ``
    is for the programs that help to reach hosts.
    """

    def __init__(
        self,
        publish: Publish,
        environ: Mapping[str, str],
        health: Callable[[], HostHealth],
        connections: SshConnections,
    ) -> None:
        self._connections = connections
        self._publish = publish
        self._health = health
        self._environ = environ
        self._remote: dict[_Reached, MonitoredTransport] = {}
        self._unswept: dict[str, set[RunId]] = {}
        self._pools: dict[HostKey, ConnectionPool] = {}
        self.helper_environ: Mapping[str, str] = {}
        self._locks: dict[HostKey, RootLocks] = {}
        # Pids and names are not unique: in containers they are the same again and again.
        self._holder = f"pid {os.getpid()} on {platform.node()}, life {secrets.token_hex(8)}"
        self._noticed: set[tuple[str, str]] = set()
        self._unwanted: set[HostKey] = set()
        self._news = trio.Event()
        self._isolation: dict[str, str] = {}

    def transport(self, host: str, settings: Settings) -> Transport:
        """Return a host's transport."""
        ssh, delivery = (
            ssh_settings(settings, self._environ, self.helper_environ),
            settings.worker.ssh_secret_delivery,
        )
        handshake = settings.agent.read_timeout
        outlived = settings.worker.outlived
        key = (host, ssh, delivery, handshake, settings.isolation, outlived)
        if key not in self._remote:
            if (host, ssh) not in self._pools:
                self._pools[host, ssh] = self._connections.pool(self, (host, ssh))
            locks = self._locks_of(host, ssh, handshake)
            remote = ShellTransport(
                host,
                self._pools[host, ssh],
                delivery="inline" if delivery == "inline" else "stdin",
                bounds=Bounds(handshake=handshake, reattach=outlived),
                notice=partial(self._notice, host),
                isolation=settings.isolation,
                isolated=partial(self._isolated, host),
                links=Links(
                    new_nonce=new_nonce,
                    lost=partial(self._link_lost, host, outlived),
                    restored=partial(self._link_restored, host),
                ),
                fence=partial(locks.fence, settings.remote_root),
                spare=locks.spare,
            )
            unswept = self._unswept.setdefault(host, set())
            self._remote[key] = MonitoredTransport(remote, self._health(), unswept, locks.hold)
        return self._remote[key]

    def mark_wanted(self, settings: Settings) -> None:
        """Keep the connections of these settings, and others only while runs use them."""
        ssh, hosts = (
            ssh_settings(settings, self._environ, self.helper_environ),
            settings.worker.ssh_hosts,
        )
        self._unwanted.clear()
        for host, used_ssh in self._pools:
            wanted = host in hosts and used_ssh == ssh
            self._connections.set_wanted(self, (host, used_ssh), wanted=wanted)
            if not wanted:
                self._unwanted.add((host, used_ssh))
        self._news.set()

    async def close_unwanted(self, is_busy: Callable[[str], bool]) -> None:
        """Close what no setting names any more once no run is there, until cancelled; ``is_busy``
        tells whether a host has runs."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            while any(self._is_open(key) for key in self._unwanted):
                for host, ssh in self._unwanted:
                    if not is_busy(host):
                        if (host, ssh) in self._locks:
                            self._locks[host, ssh].release()
                        self._connections.set_wanted(self, (host, ssh), wanted=False)
                await trio.sleep(_CLOSED_EVERY)

    def _is_open(self, key: HostKey) -> bool:
        """Tell whether a host has a root of ours, or a connection that none wants to keep."""
        holds = key in self._locks and self._locks[key].holds_any
        return holds or self._connections.is_closing(key)

    def _locks_of(self, host: str, ssh: SshSettings, handshake: float) -> RootLocks:
        if (host, ssh) not in self._locks:
            self._locks[host, ssh] = RootLocks(
                self._pools[host, ssh],
                self._holder,
                new_nonce,
                Bounds(handshake=handshake),
                self._holds_root,
            )
        return self._locks[host, ssh]

    def _holds_root(self, session: str) -> bool:
        """Tell whether a session holds a root for us: by this name of its host, or by another."""
        return any(locks.has_session(session) for locks in self._locks.values())

    def isolation_sentences(self) -> tuple[str, ...]:
        """Return what ends the processes of runs on each host that was asked."""
        return tuple(f"host {host}: {sentence}" for host, sentence in self._isolation.items())

    def hurry(self) -> None:
        """Give no process any more grace."""
        for transport in self._remote.values():
            transport.hurry()

    async def leave(self, until: float = math.inf) -> None:
        """Give back what is held on hosts, within a few seconds and by a time, and leave the
        connections to others."""
        until = min(until, trio.current_time() + _RELEASE_BOUND)
        with trio.CancelScope(deadline=until, shield=True):
            for locks in self._locks.values():
                await locks.aclose()
        self._connections.leave(self)

    def _isolated(self, host: str, sentence: str) -> None:
        """Publish what ends the processes of runs on a host, where that is news."""
        if self._isolation.get(host) != sentence:
            self._isolation[host] = sentence
            self._publish(facts.HostIsolation(host=host, detail=sentence))

    def _link_lost(self, host: str, outlived: float, run_id: str, error: HostError) -> None:
        self._publish(
            facts.HostLinkLost(host=host, run_id=RunId(run_id), error=str(error), seconds=outlived)
        )

    def _link_restored(self, host: str, run_id: str, seconds: float) -> None:
        self._publish(
            facts.HostLinkRestored(host=host, run_id=RunId(run_id), seconds=round(seconds, 1))
        )

    def _notice(self, host: str, message: str) -> None:
        """Publish something about a host, once."""
        if (host, message) not in self._noticed:
            self._noticed.add((host, message))
            self._publish(facts.HostNoticed(host=host, message=message))


def ssh_settings(
    settings: Settings, environ: Mapping[str, str], helpers: Mapping[str, str]
) -> SshSettings:
    """Return how hosts are reached; ``helpers`` is the environment of programs that help to."""
    worker = settings.worker
    strict = worker.ssh_strict_host_key_checking
    return SshSettings(
        strict="yes" if strict == "yes" else "no" if strict == "no" else "accept-new",
        config=worker.ssh_config,
        known_hosts=worker.ssh_known_hosts,
        identity_files=tuple(worker.ssh_identity_files),
        agent=environ.get("SSH_AUTH_SOCK"),
        search_path=environ.get("PATH", os.defpath),
        environ=helpers,
    )
