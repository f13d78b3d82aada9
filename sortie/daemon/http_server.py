"""What the HTTP service answers with; imported by it alone, as loading this takes long."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from sortie.daemon.views import DaemonView
from sortie.telemetry import Publish
from sortie.telemetry.metrics import MetricsSink
from sortie.telemetry.metrics.exposition import Exposition, expose
from sortie.telemetry.metrics.gauges import GaugeCollector, Gauges
from sortie.web.access import Access
from sortie.web.app import create_app
from sortie.web.controls import Controls
from sortie.web.server import serve
from sortie.web.sources import Sources

__all__ = ["Metrics", "application", "serve"]


class Metrics:
    """All metrics of a daemon; ``count`` is a sink."""

    def __init__(self, gauges: Callable[[], Gauges]) -> None:
        self._registry = CollectorRegistry()
        self.count: Publish = MetricsSink(self._registry)
        self._registry.register(GaugeCollector(gauges))

    def page(self, accept: str) -> Exposition:
        """Return them in the format that an Accept header asks for."""
        return expose(self._registry, accept)


def application(
    view: DaemonView, controls: Controls, metrics: Metrics, access: Access, publish: Publish
) -> ASGIApp:
    """Make the application over a running daemon."""
    sources = Sources(state=view.state, health=view.health, metrics=metrics.page)
    return create_app(sources, controls, access, publish)
