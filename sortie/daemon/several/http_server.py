"""The HTTP server of a process of several workflows.

Loading this module takes long: ``shared_http`` imports it in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial

import trio
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from sortie.config.settings import Settings
from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.disk_space import DiskSpace, places_of
from sortie.daemon.drain import ProcessDrain
from sortie.daemon.http_server import HttpServer
from sortie.daemon.lease_metrics import lease_gauges
from sortie.daemon.relayed_leader import RelayedLeader, answer_relayed
from sortie.daemon.relayed_wakes import RelayedWakes
from sortie.daemon.several.workflow_states import WorkflowStates
from sortie.daemon.webhook_service import WebhookService
from sortie.facts import Fact
from sortie.resources.descriptors import open_files_limit
from sortie.resources.lease import current_lease
from sortie.telemetry import Publish
from sortie.telemetry.metrics import MetricsSink, expose
from sortie.telemetry.metrics.leases import LeaseCollector
from sortie.telemetry.metrics.several import several_registry
from sortie.web.access import Access
from sortie.web.dashboard.painter import Painter
from sortie.web.event_stream import StreamRoom
from sortie.web.health import Health
from sortie.web.listener import HttpListener
from sortie.web.server import connection_limit, serve
from sortie.web.several.application import ServedProcess, create_root_app
from sortie.web.several.dispatcher import WorkflowDispatcher, base_of_workflow
from sortie.web.several.source import ServedWorkflow, SeveralStateView
from sortie.web.standby_app import ServedStandby, StandbyServer


class SeveralHttpServer:
    """Answers for all workflows, and for each that works; see SeveralSource."""

    def __init__(
        self,
        states: WorkflowStates,
        access: Access,
        publish: Publish,
        drain: ProcessDrain,
        webhooks: WebhookService,
    ) -> None:
        self._webhooks = webhooks
        self._states = states
        self._drain = drain
        self._access = access
        self._publish = publish
        self._apps: dict[str, ASGIApp] = {}
        self._served: dict[str, tuple[HttpServer, DaemonView]] = {}
        self._standbys: dict[str, tuple[StandbyServer, Painter]] = {}
        self._room = StreamRoom(connection_limit(open_files_limit()))
        registry = several_registry(self._registries)
        served = ServedProcess(self, lambda accept: expose(registry, accept), drain)
        root = create_root_app(served, access, publish)
        self._dispatcher = WorkflowDispatcher(root, self._apps)

    async def mount(
        self, services: trio.Nursery, name: str, settings: Settings, view: DaemonView
    ) -> Publish:
        """Serve a workflow from now on; return what counts its facts."""

        def publish(fact: Fact) -> None:
            self._publish(fact)
            server(fact)

        disks = DiskSpace(services, places_of(settings))
        base = base_of_workflow(name)
        server = HttpServer(view, disks, self._access, publish, base, self._room, self._drain)
        services.start_soon(server.follow)
        if (lease := current_lease()) is not None:
            relay = self._drain.leaderships.relay_of(settings)
            tell = view.orchestrator.tell
            services.start_soon(answer_relayed, relay, lease, server.app, base, publish, tell)
        self._webhooks.lead(name, view.orchestrator, publish)
        self._apps[name], self._served[name] = server.app, (server, view)
        return server

    def unmount(self, name: str) -> None:
        """Serve a workflow no more, unless as a standby."""
        self._webhooks.lead_no_more(name)
        self._apps.pop(name, None)
        self._served.pop(name, None)
        if name in self._standbys:
            self._apps[name] = self._standbys[name][0].app

    async def stand_by(self, name: str, settings: Settings, leader: RelayedLeader) -> None:
        """Have the leader of a workflow answer whenever it is not led here, until cancelled."""
        base = base_of_workflow(name)
        registry = CollectorRegistry()
        served = ServedStandby(
            leader=leader,
            metrics=lambda accept: expose(registry, accept),
            drains=self._drain,
            room=self._room,
        )
        count = MetricsSink(registry)

        def publish(fact: Fact) -> None:
            self._publish(fact)
            count(fact)

        server = StandbyServer(served, self._access, publish, base)
        self._standbys[name] = (server, Painter(leader.secrets, base))
        self._apps.setdefault(name, server.app)
        wakes = RelayedWakes(leader, publish)
        self._webhooks.stand_by(name, settings, publish, wakes)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wakes.run)
                await server.follow()
        finally:
            self._webhooks.stand_by_no_more(name)
            del self._standbys[name]
            if self._apps.get(name) is server.app:
                del self._apps[name]

    async def run(self, listener: HttpListener) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._webhooks.run)
            await serve(self._webhooks.before(self._dispatcher), listener, self._publish)

    def _registries(self) -> dict[str, CollectorRegistry]:
        """Return the metrics of each workflow; one that stands by has those of its lease."""
        found = {name: server.registry for name, (server, _) in self._served.items()}
        for name, candidacy in self._states.candidacies().items():
            if name not in found:
                registry = found[name] = CollectorRegistry()
                registry.register(LeaseCollector(partial(lease_gauges, candidacy)))
        return found

    def state(self) -> SeveralStateView:
        """See SeveralSource."""
        return self._states.state()

    def working(self) -> Sequence[ServedWorkflow]:
        """See SeveralSource."""
        led = [
            ServedWorkflow(name, view, server.painter)
            for name, (server, view) in self._served.items()
        ]
        elsewhere = [
            ServedWorkflow(name, relayed, self._standbys[name][1])
            for name, relayed in self._states.relayed.items()
            if name in self._standbys and name not in self._served and relayed.view is not None
        ]
        return [*led, *elsewhere]

    async def look(self) -> None:
        """See SeveralSource."""
        await self._states.look()

    def health(self) -> Health:
        """See SeveralSource."""
        return self._states.health()

    def secrets(self) -> Set[str]:
        """See SeveralSource."""
        return self._states.secrets()
