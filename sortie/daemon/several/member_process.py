"""What one of several workflows has of the process that it shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

import trio
from msgspec import Struct

from sortie.config.settings import Settings
from sortie.daemon.common_pools import CommonPools
from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.guards import Guards
from sortie.daemon.leadership import Leaderships
from sortie.daemon.reloader import Reloader
from sortie.daemon.several.shared_shutdown import MemberEnding, SharedShutdown
from sortie.daemon.several.shared_slots import SharedSlots
from sortie.daemon.transports import RemoteHosts, TransportPool
from sortie.facts import Fact, WorkflowReloaded
from sortie.orchestrator import Orchestrator
from sortie.resources import Shortages
from sortie.resources.lease import Lease
from sortie.scheduler.grants import SlotGrant
from sortie.telemetry import Publish
from sortie.telemetry.live_runs import LiveRuns
from sortie.telemetry.log import LogSink
from sortie.transports.local import IsolationInForce, LocalTransport
from sortie.web.webhooks.records import KindRecord

if TYPE_CHECKING:
    from sortie.daemon.candidacy import Candidacy
    from sortie.daemon.common_limits import CommonLimits


class Mount(Protocol):
    """Answers for workflows over HTTP, each below a path of its own."""

    async def mount(
        self, services: trio.Nursery, name: str, settings: Settings, view: DaemonView
    ) -> tuple[str | None, Publish]:
        """Serve a workflow from now on; return its address, None where there is no server, and a
        sink that counts what happens in it."""
        ...

    def unmount(self, name: str) -> None:
        """Serve a workflow no more."""
        ...

    def deliveries(self, kind: str) -> KindRecord:
        """Return what has come of a kind of webhook to this process."""
        ...

    def standing_by(
        self, name: str, settings: Settings, candidacy: Candidacy, known: Set[str]
    ) -> AbstractAsyncContextManager[str | None]:
        """Have a workflow's leader answer whenever it is not served here, for the length of a
        block; gives its address as ``mount`` does. ``known`` are secrets of this process."""
        ...


class SharedParts(Struct, kw_only=True):
    """What the workflows of a process share. ``hide`` is told the secrets of each by its name,
    ``manager`` that files were read again, and ``level`` is the least that is logged."""

    token: str
    level: str
    manager: Publish
    isolation: IsolationInForce
    local: LocalTransport
    hosts: RemoteHosts
    guards: Guards
    shutdown: SharedShutdown
    shortages: Shortages
    slots: SharedSlots
    http: Mount
    hide: Callable[[str, Set[str]], object]
    leaderships: Leaderships
    common: CommonPools


class MemberProcess:
    """See DaemonProcess. ``view``, ``reloader`` and ``live_runs`` are there once it works, when
    ``serving`` is set."""

    def __init__(self, name: str, parts: SharedParts) -> None:
        self.name = name
        self.token = parts.token
        self.isolation = parts.isolation
        self.local: LocalTransport | None = parts.local
        self.hosts: RemoteHosts | None = parts.hosts
        self.shortages = parts.shortages
        self.grant: SlotGrant | None = SlotGrant()
        self.view: DaemonView | None = None
        self.reloader: Reloader | None = None
        self.live_runs: LiveRuns | None = None
        self.serving = trio.Event()
        self._parts = parts
        self._kept: list[Fact] = []
        self._count: Publish = self._kept.append
        self._ending: MemberEnding | None = None
        self._common: CommonLimits | None = None
        self._lease: Lease | None = None
        self.sinks: Sequence[Publish] = (
            LogSink(parts.level),
            self._counted,
            parts.slots,
            self._reloaded,
        )

    def _reloaded(self, fact: Fact) -> None:
        """Tell the service manager that a file was read again, if that was asked for."""
        if isinstance(fact, WorkflowReloaded):
            self._parts.manager(fact)

    def _counted(self, fact: Fact) -> None:
        """Count a fact, or keep it until the workflow is served."""
        self._count(fact)

    def lead(self, settings: Settings, lease: Lease) -> None:
        """Share slots with the workflows of other daemons once it works: it has a lease."""
        self._lease, self._common = lease, self._parts.common.of(settings)
        if self._common is not None:
            self.sinks = (*self.sinks, self._common)

    def hide_in_log(self, secrets: frozenset[str]) -> None:
        """See DaemonProcess."""
        self._parts.hide(self.name, secrets)

    async def begin(
        self,
        services: trio.Nursery,  # noqa: ARG002
        transports: TransportPool,
        live_runs: LiveRuns,
    ) -> MemberEnding:
        """See DaemonProcess."""
        self.live_runs = live_runs
        self._ending = self._parts.shutdown.member(transports, self.name)
        return self._ending

    def lose_lease(self) -> None:
        """Leave to the next leader what it can go on with, and give no other run of the workflow
        any more time."""
        if self._ending is not None:
            self._ending.lose_lease()

    async def serve(
        self, services: trio.Nursery, settings: Settings, view: DaemonView, reloader: Reloader
    ) -> str | None:
        """See DaemonProcess. From now on the workflow gets slots."""
        self.view, self.reloader = view, reloader
        url, count = await self._parts.http.mount(services, self.name, settings, view)
        for fact in self._kept:
            count(fact)
        self._kept.clear()
        self._count = count
        self._parts.slots.join(self.name, view.orchestrator, divided=self._common is None)
        if self._common is not None and self._lease is not None:
            self._common.join(view.orchestrator, self._lease)
        self.serving.set()
        return url

    def deliveries(self, kind: str) -> KindRecord:
        """See DaemonProcess."""
        return self._parts.http.deliveries(kind)

    def work_until_idle(
        self,
        services: trio.Nursery,  # noqa: ARG002
        orchestrator: Orchestrator,  # noqa: ARG002
    ) -> Sequence[Publish]:
        """See DaemonProcess. The process waits for all of its workflows."""
        return ()

    def crashing(self) -> None:
        """See DaemonProcess."""
        self._parts.slots.freeze(self.name)
        if self._common is not None and self._lease is not None:
            self._common.freeze(self._lease.workflow)

    def finished(self, transports: TransportPool) -> None:
        """See DaemonProcess."""
        transports.close_until = self._parts.guards.deadline.closed_until

    def release(self, *, ended: bool = True) -> None:
        """Let go of all that is shared: the workflow and its runs have ended. Not ``ended``: its
        lease was lost, so that the next leader tells what is left of them."""
        self.view = self.reloader = self.live_runs = None
        self._parts.http.unmount(self.name)
        self._parts.slots.leave(self.name)
        if self._common is not None and self._lease is not None:
            self._common.leave(self._lease.workflow, ended=ended)
        if self._ending is not None:
            self._parts.shutdown.release(self._ending)
