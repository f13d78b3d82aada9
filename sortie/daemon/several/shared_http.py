"""The HTTP service of a process of several workflows; it listens before any of them begins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from sortie.config.settings import ServerSettings, Settings
from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.drain import ProcessDrain
from sortie.daemon.http_service import open_listener
from sortie.daemon.leadership import Leaderships
from sortie.daemon.relayed_leader import RelayedLeader
from sortie.daemon.several.relayed_state import RelayedState
from sortie.daemon.several.workflow_states import WorkflowStates
from sortie.daemon.webhook_service import WebhookService
from sortie.facts import Fact
from sortie.resources import run_in_thread
from sortie.telemetry import Publish
from sortie.web.webhooks.records import KindRecord

if TYPE_CHECKING:
    from sortie.daemon.candidacy import Candidacy
    from sortie.daemon.several.http_server import SeveralHttpServer


class SharedHttp:
    """See Mount; without a port nothing is served and nothing is counted."""

    def __init__(self, publish: Publish, leaderships: Leaderships) -> None:
        self._publish = publish
        self._leaderships = leaderships
        self._server: SeveralHttpServer | None = None
        self._url = ""
        self.webhooks = WebhookService(publish)
        self._states: WorkflowStates
        self._drain: ProcessDrain

    async def start(
        self,
        services: trio.Nursery,
        settings: ServerSettings,
        webhooks_port: int | None,
        token: str,
        states: WorkflowStates,
    ) -> None:
        """Take the port and serve, without any workflow yet. Raises ListenError."""
        if settings.port == 0:
            return
        await self.webhooks.open(settings, webhooks_port)
        listener, access = await open_listener(settings, token)
        drain = ProcessDrain(self._leaderships, lambda: states.views().values())
        self._states, self._drain = states, drain
        states.drain = drain

        def load() -> SeveralHttpServer:
            from sortie.daemon.several.http_server import SeveralHttpServer

            return SeveralHttpServer(states, access, self._publish, drain, self.webhooks)

        self._url = listener.local_url
        try:
            await self.webhooks.load()
            self._server = await run_in_thread(load)
        except BaseException:
            listener.close()
            self.webhooks.close()
            raise
        services.start_soon(self._server.run, listener)

    async def mount(
        self, services: trio.Nursery, name: str, settings: Settings, view: DaemonView
    ) -> tuple[str | None, Publish]:
        """See Mount."""
        if self._server is None:
            return None, _ignore
        count = await self._server.mount(services, name, settings, view)
        return self._url_of(name), count

    def _url_of(self, name: str) -> str:
        return f"{self._url}workflows/{name}/"

    @asynccontextmanager
    async def standing_by(
        self, name: str, settings: Settings, candidacy: Candidacy, known: Set[str]
    ) -> AsyncIterator[str | None]:
        """See Mount."""
        if self._server is None:
            yield None
            return
        relay = self._leaderships.relay_of(settings)
        leader = RelayedLeader(candidacy, relay, self._drain, known)
        self._states.relayed[name] = RelayedState(leader)
        try:
            async with trio.open_nursery() as services:
                services.start_soon(self._server.stand_by, name, settings, leader)
                yield self._url_of(name)
                services.cancel_scope.cancel()
        finally:
            del self._states.relayed[name]

    def deliveries(self, kind: str) -> KindRecord:
        """See Mount."""
        return self.webhooks.record(kind)

    def unmount(self, name: str) -> None:
        """See Mount."""
        if self._server is not None:
            self._server.unmount(name)


def _ignore(_fact: Fact) -> None:
    """Count nothing, as nobody can ask."""
