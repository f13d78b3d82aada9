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
from sortie.daemon.http_server import HttpServer
from sortie.daemon.lease_metrics import lease_gauges
from sortie.daemon.several.workflow_states import WorkflowStates
from sortie.facts import Fact
from sortie.resources.descriptors import open_files_limit
from sortie.telemetry import Publish
from sortie.telemetry.metrics import expose
from sortie.telemetry.metrics.leases import LeaseCollector
from sortie.telemetry.metrics.several import several_registry
from sortie.web.access import Access
from sortie.web.event_stream import StreamRoom
from sortie.web.health import Health
from sortie.web.listener import HttpListener
from sortie.web.server import connection_limit, serve
from sortie.web.several.application import ServedProcess, create_root_app
from sortie.web.several.dispatcher import WorkflowDispatcher, base_of_workflow
from sortie.web.several.source import ServedWorkflow, SeveralStateView


class SeveralHttpServer:
    """Answers for all workflows, and for each that works; see SeveralSource."""

    def __init__(self, states: WorkflowStates, access: Access, publish: Publish) -> None:
        self._states = states
        self._access = access
        self._publish = publish
        self._apps: dict[str, ASGIApp] = {}
        self._served: dict[str, tuple[HttpServer, DaemonView]] = {}
        self._room = StreamRoom(connection_limit(open_files_limit()))
        registry = several_registry(self._registries)
        served = ServedProcess(self, lambda accept: expose(registry, accept))
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
        server = HttpServer(view, disks, self._access, publish, base_of_workflow(name), self._room)
        services.start_soon(server.follow)
        self._apps[name], self._served[name] = server.app, (server, view)
        return server

    def unmount(self, name: str) -> None:
        """Serve a workflow no more."""
        self._apps.pop(name, None)
        self._served.pop(name, None)

    async def run(self, listener: HttpListener) -> None:
        """Serve until cancelled."""
        await serve(self._dispatcher, listener, self._publish)

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
        return [
            ServedWorkflow(name, view, server.painter)
            for name, (server, view) in self._served.items()
        ]

    def health(self) -> Health:
        """See SeveralSource."""
        return self._states.health()

    def secrets(self) -> Set[str]:
        """See SeveralSource."""
        return self._states.secrets()
