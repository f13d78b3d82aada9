"""What the HTTP service answers with; imported by it alone, as loading this takes long."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from sortie.daemon.views import DaemonView
from sortie.resources.descriptors import open_files_limit
from sortie.telemetry import Publish
from sortie.telemetry.metrics import MetricsSink
from sortie.telemetry.metrics.exposition import Exposition, expose
from sortie.telemetry.metrics.gauges import GaugeCollector, Gauges
from sortie.telemetry.metrics.machine import Disks, register_machine
from sortie.web.access import Access
from sortie.web.app import create_app
from sortie.web.broadcaster import Broadcaster
from sortie.web.controls import Controls
from sortie.web.dashboard.board import WAITING
from sortie.web.dashboard.last_said import last_said
from sortie.web.dashboard.routes import Dashboard
from sortie.web.dashboard.sources import DashboardSources, SaidLine
from sortie.web.event_stream import StreamRoom
from sortie.web.live import Live
from sortie.web.redaction import Redaction
from sortie.web.server import connection_limit, serve
from sortie.web.sources import Sources
from sortie.web.state_feed import StateFeed

__all__ = ["Metrics", "Shown", "application", "dashboard_of", "live_events", "serve"]


class Metrics:
    """All metrics of a daemon; ``count`` is a sink."""

    def __init__(self, gauges: Callable[[], Gauges], disks: Callable[[], Disks]) -> None:
        self._registry = CollectorRegistry()
        self.count: Publish = MetricsSink(self._registry)
        self._registry.register(GaugeCollector(gauges))
        register_machine(self._registry, disks)

    def page(self, accept: str) -> Exposition:
        """Return them in the format that an Accept header asks for."""
        return expose(self._registry, accept)


def dashboard_of(view: DaemonView, controls: Controls, redaction: Redaction) -> Dashboard:
    """Make the pages of a running daemon."""

    async def said(run: str) -> Sequence[SaidLine] | str:
        return await last_said(controls.transcripts, run)

    sources = DashboardSources(
        state=lambda: view.state(first_kept=sys.maxsize),
        overview=lambda: view.state(WAITING),
        health=view.health,
        activity=view.activity.view,
        said=said,
        redaction=redaction,
    )
    return Dashboard(sources, controls, secrets.token_hex(4))


def live_events(view: DaemonView, dashboard: Dashboard, redaction: Redaction) -> Live:
    """Make the streams of a running daemon."""
    return Live(
        events=Broadcaster(StateFeed(view.state, redaction), secrets.token_hex(4)),
        room=StreamRoom(connection_limit(open_files_limit())),
        pages=dashboard.broadcasters,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a daemon shows: what it is, what has happened, and what happens."""

    view: DaemonView
    metrics: Metrics
    live: Live
    dashboard: Dashboard
    redaction: Redaction


def application(shown: Shown, controls: Controls, access: Access, publish: Publish) -> ASGIApp:
    """Make the application over a running daemon."""
    sources = Sources(
        state=shown.view.state,
        health=shown.view.health,
        metrics=shown.metrics.page,
        live=shown.live,
        pages=tuple(shown.dashboard.routes(shown.live.room)),
        redaction=shown.redaction,
    )
    return create_app(sources, controls, access, publish)
