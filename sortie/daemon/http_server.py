"""The HTTP server of a daemon: its metrics, pages, live events and the application over them.

Loading this module takes longer than a daemon needs to its first poll: ``http_service`` imports it
after that.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping

import trio
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from sortie.config.rules import DEFAULT_RULE
from sortie.daemon import state_view
from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.disk_space import DiskSpace
from sortie.daemon.lease_metrics import lease_gauges
from sortie.facts import Fact
from sortie.model import LOCAL
from sortie.resources.descriptors import open_files_limit
from sortie.scheduler import Snapshot
from sortie.telemetry import Publish
from sortie.telemetry.metrics import MetricsSink, expose
from sortie.telemetry.metrics.gauges import GaugeCollector, Gauges, register_machine
from sortie.telemetry.metrics.leases import LeaseCollector
from sortie.web.access import Access
from sortie.web.app import Served, create_app
from sortie.web.broadcaster import Broadcaster
from sortie.web.dashboard.routes import Dashboard
from sortie.web.drain import DrainSource, NoLeases
from sortie.web.event_stream import LiveEvents, StreamRoom
from sortie.web.listener import HttpListener
from sortie.web.server import connection_limit, serve
from sortie.web.state_feed import StateFeed


class HttpServer:
    """Answers for a workflow, below the path ``base`` where several share a server, and then also
    the ``room`` for streams. ``drains`` are the leases of the process, if it has some."""

    def __init__(
        self,
        view: DaemonView,
        disks: DiskSpace,
        access: Access,
        publish: Publish,
        base: str = "",
        room: StreamRoom | None = None,
        drains: DrainSource | None = None,
    ) -> None:
        registry = self.registry = CollectorRegistry()
        self._metrics: Publish = MetricsSink(registry)
        registry.register(GaugeCollector(lambda: gauges_of(view)))
        if (lease := view.lease) is not None:
            registry.register(LeaseCollector(lambda: lease_gauges(lease.candidacy)))
        register_machine(registry, disks.known)
        dashboard = Dashboard(view, base)
        self.painter = dashboard.painter
        feed = StateFeed(view.state, view.secrets)
        self._live = LiveEvents(
            events=Broadcaster(feed, secrets.token_hex(4)),
            room=room or StreamRoom(connection_limit(open_files_limit())),
            pages=dashboard.broadcasters,
        )
        served = Served(
            daemon=view,
            metrics=lambda accept: expose(registry, accept),
            live=self._live,
            dashboard=dashboard,
            drains=drains or NoLeases(),
        )
        self._publish = publish
        self.app = create_app(served, access, publish)

    def __call__(self, fact: Fact) -> None:
        """Count a fact, and let followers of live events look for changes."""
        self._metrics(fact)
        self._live.notify(fact)

    async def follow(self) -> None:
        """Send what changes to all followers, until cancelled."""
        await self._live.run(self._publish)

    async def run(self, listener: HttpListener, app: ASGIApp) -> None:
        """Serve until cancelled; ``app`` is its own, or stands before it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.follow)
            await serve(app, listener, self._publish)


def gauges_of(view: DaemonView) -> Gauges:
    """Return what is read when metrics are asked for."""
    orchestrator = view.orchestrator
    snapshot = orchestrator.snapshot()
    backlog = orchestrator.backlog(snapshot, 0)
    remote = [host for host in snapshot.policy.hosts if host != LOCAL]
    spent = snapshot.spent_today
    amounts = {"tokens": spent.tokens, "credits": spent.credits, "usd": spent.cost_usd}
    return Gauges(
        sessions_running=len(snapshot.worked),
        sessions_retrying=len(snapshot.waiting),
        issues_held=len(snapshot.held),
        workspaces_kept=sum(len(claim.kept) for claim in snapshot.kept),
        watched_pull_requests=len(snapshot.watched),
        issues_queued=backlog.queued,
        issues_blocked=backlog.blocked,
        slots_available=snapshot.free,
        active_sessions_elapsed_seconds=state_view.elapsed(snapshot),
        dispatch_paused=snapshot.paused,
        workflow_valid=view.workflow().valid,
        store_writable=orchestrator.store_error is None,
        ready=view.health().ready,
        usage_limited=snapshot.limit is not None,
        daily_budget_spent=snapshot.day_spent is not None,
        spent_today={unit: used for unit, used in amounts.items() if used is not None},
        ssh_host_usage={host: snapshot.by_host.get(host, 0) for host in remote},
        ssh_host_up={host: snapshot.trouble_of(host) is None for host in remote},
        tracker_budgets={b.name: (b.remaining, b.limit) for b in view.tracker.budgets()},
        rule_slots=_rule_slots(snapshot),
        notifications=_notifications(view),
    )


def _notifications(view: DaemonView) -> Mapping[str, tuple[int, int, float]]:
    if view.notifications is None:
        return {}
    now = time.time()
    return {
        one.target: (one.waiting, one.dead, 0.0 if one.oldest is None else now - one.oldest)
        for one in view.notifications.standing()
    }


def _rule_slots(snapshot: Snapshot) -> Mapping[str, tuple[int, int | None, int | None]]:
    """Return the slots of each rule, and those that runs without a rule use; none without rules."""
    shares = state_view.rule_slots(snapshot)
    found: dict[str, tuple[int, int | None, int | None]] = {
        share.rule: (share.used, share.guaranteed, share.limit) for share in shares
    }
    if found:
        found[DEFAULT_RULE] = (snapshot.by_rule.get("", 0), None, None)
    return found
