"""The process of a single workflow: its signals, watchdog, HTTP server and service manager."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import trio

from sortie.config.settings import Settings
from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.guards import Guards, published_shortages
from sortie.daemon.http_service import HttpService
from sortie.daemon.reloader import Reloader
from sortie.daemon.service_manager import ServiceManager, ServiceStanding, standing_of
from sortie.daemon.shutdown import Shutdown
from sortie.daemon.transports import RemoteHosts, TransportPool
from sortie.facts import Fact
from sortie.orchestrator import Orchestrator
from sortie.resources.lease import Lease
from sortie.scheduler.grants import SlotGrant
from sortie.telemetry import Publish, facts
from sortie.telemetry.live_runs import LiveRuns
from sortie.telemetry.log import LogSink
from sortie.telemetry.log import hide as hide_in_log
from sortie.transports.local import IsolationInForce, LocalTransport
from sortie.web.webhooks.records import KindRecord

if TYPE_CHECKING:
    from sortie.daemon.common_limits import CommonLimits
    from sortie.daemon.http_front import HttpFront


class SoleProcess:
    """See DaemonProcess. ``reloader`` is there once the workflow works; ``front`` has the port of a
    process that has stood by."""

    def __init__(
        self,
        level: str,
        environ: Mapping[str, str],
        token: str,
        guards: Guards,
        front: HttpFront | None = None,
    ) -> None:
        self.token = token
        self.local: LocalTransport | None = None
        self.hosts: RemoteHosts | None = None
        self.grant: SlotGrant | None = None
        self.isolation = IsolationInForce()
        self.reloader: Reloader | None = None
        self._guards = guards
        self._front = front
        self._http = HttpService(self._publish)
        self._manager = ServiceManager.of(environ, self._publish)
        self.sinks: Sequence[Publish] = (LogSink(level), self._http, self._manager)
        self.shortages = published_shortages(self._publish)
        self._view: DaemonView | None = None
        self._shutdown: Shutdown | None = None
        self._common: CommonLimits | None = None
        self._lease: Lease | None = None

    @property
    def asked(self) -> bool:
        """Whether the process is ending."""
        return self._shutdown is not None and self._shutdown.asked

    def lose_lease(self) -> None:
        """Leave to the next leader what it can go on with, and give no other run any more time."""
        if self._shutdown is not None:
            self._shutdown.lose_lease()

    def share(self, common: CommonLimits, lease: Lease) -> None:
        """Share slots with the workflows of other daemons: the workflow has a lease."""
        self.grant = SlotGrant(common=True)
        self._common, self._lease = common, lease
        self.sinks = (*self.sinks, common)

    def leave(self, *, ended: bool) -> None:
        """Share slots no more; ``ended``: all runs of the workflow have ended."""
        if self._common is not None and self._lease is not None:
            self._common.leave(self._lease.workflow, ended=ended)

    def _publish(self, fact: Fact) -> None:
        for sink in self.sinks:
            sink(fact)

    def hide_in_log(self, secrets: frozenset[str]) -> None:
        """See DaemonProcess."""
        hide_in_log(secrets)

    async def begin(
        self, services: trio.Nursery, transports: TransportPool, live_runs: LiveRuns
    ) -> Shutdown:
        """See DaemonProcess. Signals are obeyed from now on."""
        shutdown = self._shutdown = Shutdown(None, transports, self._publish, self._guards.deadline)
        self._guards.start(services, self.shortages, self._publish, live_runs.is_empty)
        services.start_soon(self._manager.pulse, self._standing)
        await services.start(shutdown.handle_signals, self._reload)
        return shutdown

    def _reload(self) -> None:
        if self.reloader is not None:
            self._manager.reloading()
            self.reloader.force()

    def _standing(self) -> ServiceStanding | None:
        return None if self._view is None else standing_of(self._view)

    async def serve(
        self,
        services: trio.Nursery,
        settings: Settings,
        view: DaemonView,
        reloader: Reloader,
    ) -> str | None:
        """See DaemonProcess."""
        self._view, self.reloader = view, reloader
        if self._common is not None and self._lease is not None:
            self._common.join(view.orchestrator, self._lease)
        return await self._http.start(services, settings, self.token, view, self._front)

    def deliveries(self, kind: str) -> KindRecord:
        """See DaemonProcess."""
        return self._http.webhooks.record(kind)

    def work_until_idle(
        self, services: trio.Nursery, orchestrator: Orchestrator
    ) -> Sequence[Publish]:
        """See DaemonProcess."""
        assert self._shutdown is not None
        services.start_soon(self._shutdown.stop_when_idle, orchestrator)
        return (self._shutdown,)

    def crashing(self) -> None:
        """See DaemonProcess. The watchdog ends a process that does not end by itself."""
        self._guards.watchdog.leave_within()
        if self._common is not None and self._lease is not None:
            self._common.freeze(self._lease.workflow)

    def finished(self, transports: TransportPool) -> None:
        """See DaemonProcess."""
        self._guards.watchdog.leave_within()
        if self.asked:
            self._guards.watchdog.leave_within(self._guards.deadline.left())
        transports.close_until = self._guards.deadline.closed_until

    def stopped(self) -> int:
        """Tell that all is closed, and return the exit code."""
        assert self._shutdown is not None
        self._publish(facts.DaemonStopped(reason=self._shutdown.reason))
        return self._shutdown.exit_code
