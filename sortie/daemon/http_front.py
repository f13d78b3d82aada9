"""The port of a process that stands by for its workflow, and later leads it.

Rule 1: the port is open from the start. What answers is loaded once it is known whether this
process leads: clients that come before wait in the listener's queue.
Rule 2: whoever is signed in stays so when this process becomes the leader.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from sortie.config.settings import Settings
from sortie.daemon.drain import ProcessDrain
from sortie.daemon.endpoint_file import (
    EndpointFile,
    endpoint_of_this_process,
    is_at_work,
    read_endpoint,
)
from sortie.daemon.http_service import open_listener
from sortie.daemon.leadership import Leaderships
from sortie.daemon.relayed_leader import RelayedLeader, answer_relayed
from sortie.daemon.relayed_wakes import RelayedWakes
from sortie.daemon.webhook_service import WebhookService
from sortie.facts import Fact
from sortie.model import SortieError
from sortie.resources import Shortage, run_in_thread
from sortie.resources.lease import current_lease
from sortie.telemetry import Publish, facts
from sortie.web.access import Access
from sortie.web.listener import HttpListener

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from sortie.daemon.candidacy import Candidacy
    from sortie.daemon.http_server import HttpServer
    from sortie.daemon.relay import Relay
    from sortie.orchestrator import Orchestrator
    from sortie.web.standby_app import StandbyServer

FIRST_LEADER = 1.0
"""Seconds after which a process that does not lead counts as a standby."""


class HttpFront:
    """An ASGI application that is another one before and after this process leads."""

    def __init__(
        self,
        listener: HttpListener,
        access: Access,
        relay: Relay,
        drain: ProcessDrain,
        publish: Publish,
    ) -> None:
        self.access = access
        self.drain = drain
        self._listener = listener
        self._relay = relay
        self.publish = publish
        self.webhooks = WebhookService(publish)
        self._app: ASGIApp | None = None
        self._loaded = trio.Event()
        self._received = trio.Event()

    @property
    def url(self) -> str:
        """The address for commands on this machine."""
        return self._listener.local_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as what is in force now."""
        assert self._app is not None
        await self._app(scope, receive, send)

    def use(self, app: ASGIApp) -> None:
        """Have this application answer from now on."""
        self._app = app
        self._loaded.set()

    async def serve(self) -> None:
        """Serve until cancelled."""
        await self._loaded.wait()
        from sortie.web.server import serve

        await self.webhooks.load()
        self._received.set()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.webhooks.run)
            await serve(self.webhooks.before(self), self._listener, self.publish)

    async def stand_by(self, candidacy: Candidacy, settings: Settings, known: Set[str]) -> None:
        """Have the leader answer, until cancelled; ``known`` are secrets of this process."""
        with trio.move_on_after(FIRST_LEADER):
            await candidacy.leading.wait()
            return
        leader = RelayedLeader(candidacy, self._relay, self.drain, known)
        server = await run_in_thread(standby_server, leader, self)
        if self._app is None:
            self.use(server.app)
        await self._received.wait()
        wakes = RelayedWakes(leader, server.publish)
        self.webhooks.stand_by("", settings, server.publish, wakes)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wakes.run)
            await server.follow()

    async def lead(self, server: HttpServer, orchestrator: Orchestrator, publish: Publish) -> None:
        """Answer as the leader, until cancelled; also what other daemons are asked."""
        lease, tell = current_lease(), orchestrator.tell
        assert lease is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.follow)
            nursery.start_soon(answer_relayed, self._relay, lease, server.app, "", publish, tell)
            self.use(server.app)
            await self._received.wait()
            self.webhooks.lead("", orchestrator, publish)


@asynccontextmanager
async def opened_front(
    settings: Settings,
    token: str,
    candidacy: Candidacy,
    leaderships: Leaderships,
    known: Set[str],
    publish: Publish,
) -> AsyncIterator[HttpFront | None]:
    """Serve for the length of the block; None without a port. Raises ListenError."""
    if settings.server.port == 0:
        yield None
        return
    listener, access = await open_listener(settings.server, token)
    relay = leaderships.relay_of(settings)
    front = HttpFront(listener, access, relay, ProcessDrain(leaderships), publish)
    try:
        await front.webhooks.open(settings.server, settings.webhooks.port)
        async with trio.open_nursery() as services:
            services.start_soon(front.serve)
            services.start_soon(front.stand_by, candidacy, settings, known)
            yield front
            services.cancel_scope.cancel()
    finally:
        listener.close()
        front.webhooks.close()


def standby_server(leader: RelayedLeader, front: HttpFront) -> StandbyServer:
    """Load and make what answers for a workflow that another daemon leads; takes a while."""
    from prometheus_client import CollectorRegistry

    from sortie.daemon.lease_metrics import lease_gauges
    from sortie.resources.descriptors import open_files_limit
    from sortie.telemetry.metrics import MetricsSink, expose
    from sortie.telemetry.metrics.leases import LeaseCollector
    from sortie.web.event_stream import StreamRoom
    from sortie.web.server import connection_limit
    from sortie.web.standby_app import ServedStandby, StandbyServer

    registry = CollectorRegistry()
    registry.register(LeaseCollector(partial(lease_gauges, leader.candidacy)))
    served = ServedStandby(
        leader=leader,
        metrics=lambda accept: expose(registry, accept),
        drains=front.drain,
        room=StreamRoom(connection_limit(open_files_limit())),
    )
    count = MetricsSink(registry)

    def publish(fact: Fact) -> None:
        front.publish(fact)
        count(fact)

    return StandbyServer(served, front.access, publish)


@asynccontextmanager
async def standby_endpoint(
    settings: Settings, workflow: str, url: str | None, token: str, publish: Publish
) -> AsyncIterator[None]:
    """Let commands on this machine find this process while it stands by, unless they find another
    daemon with the same database path."""
    file = EndpointFile(settings.db_path, endpoint_of_this_process(url, token, workflow))

    def write() -> None:
        if not _is_of_another(settings.db_path):
            file.write()

    try:
        await run_in_thread(write)
    except (OSError, Shortage) as exc:
        error = getattr(exc, "strerror", None) or str(exc)
        publish(facts.ControlUnavailable(path=file.path, error=error))
    try:
        yield
    finally:
        file.remove()


def _is_of_another(db_path: str) -> bool:
    try:
        endpoint = read_endpoint(db_path)
    except SortieError:
        return False
    return endpoint.process.pid != os.getpid() and is_at_work(db_path, endpoint)
