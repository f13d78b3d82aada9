"""The webhooks of a process: one receiver, behind the port of the server or a port of its own.

What receives is loaded in a thread, as the HTTP server is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import trio

from sortie.config.settings import ServerSettings, Settings
from sortie.facts import Fact
from sortie.resources import run_in_thread
from sortie.scheduler.events import DeliveriesSeen
from sortie.telemetry import Publish
from sortie.web.listener import HttpListener, ListenAddress, listen
from sortie.web.webhooks.records import KindRecord

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from sortie.orchestrator import Orchestrator
    from sortie.web.webhooks.receiver import WebhookReceiver

OWN_CONNECTIONS = 32
"""Connections that are open at most on a port of webhooks alone."""

Tell = Callable[[DeliveriesSeen], object]


class WebhookService:
    """Use ``open`` and ``load`` first, and ``run`` for as long as deliveries are taken."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._listener: HttpListener | None = None
        self._receiver: WebhookReceiver | None = None

    async def open(self, server: ServerSettings, port: int | None) -> None:
        """Take the port for webhooks alone, if there is one. Raises ListenError.

        It needs no token: whoever connects needs the secret of a service.
        """
        if port is not None:
            address = ListenAddress(
                host=server.host, port=port, token_given=True, setting="webhooks.port"
            )
            self._listener = await listen(address)

    async def load(self) -> None:
        """Make the receiver; takes a while."""

        def made() -> WebhookReceiver:
            from sortie.web.webhooks.receiver import WebhookReceiver

            return WebhookReceiver(self._publish, time.time)

        self._receiver = await run_in_thread(made)

    @property
    def has_own_port(self) -> bool:
        """Whether webhooks have a port of their own."""
        return self._listener is not None

    def before(self, app: ASGIApp) -> ASGIApp:
        """Return an application that takes deliveries too, unless they have a port of their own."""
        if self._receiver is None or self._listener is not None:
            return app
        from sortie.web.webhooks.gate import WebhookGate

        return WebhookGate(self._receiver, app)

    async def run(self) -> None:
        """Take deliveries until cancelled."""
        assert self._receiver is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._receiver.run)
            if self._listener is not None:
                from sortie.web.server import serve
                from sortie.web.webhooks.gate import WebhookGate, nothing_else

                app = WebhookGate(self._receiver, nothing_else)
                await serve(app, self._listener, self._publish, most=OWN_CONNECTIONS)

    def close(self) -> None:
        """Give the port back; safe more than once."""
        if self._listener is not None:
            self._listener.close()

    def lead(self, name: str, orchestrator: Orchestrator, publish: Publish) -> None:
        """Take deliveries for a workflow that this process leads, by the secrets in force."""

        def secrets() -> Mapping[str, str]:
            return orchestrator.settings.webhooks.secrets

        self._subscribe("lead", name, secrets, publish, orchestrator.tell)

    def stand_by(self, name: str, settings: Settings, publish: Publish, tell: Tell) -> None:
        """Take deliveries for a workflow whenever another process leads it."""
        known = settings.webhooks.secrets
        self._subscribe("stand_by", name, lambda: known, publish, tell)

    def _subscribe(
        self,
        how: str,
        name: str,
        secrets: Callable[[], Mapping[str, str]],
        publish: Callable[[Fact], object],
        tell: Tell,
    ) -> None:
        if self._receiver is not None:
            from sortie.web.webhooks.receiver import WebhookSubscriber

            subscriber = WebhookSubscriber(secrets=secrets, publish=publish, tell=tell)
            getattr(self._receiver, how)(name, subscriber)

    def lead_no_more(self, name: str) -> None:
        """Take no deliveries any more for a workflow as its leader."""
        if self._receiver is not None:
            self._receiver.lead_no_more(name)

    def stand_by_no_more(self, name: str) -> None:
        """Take no deliveries any more for a workflow as a standby."""
        if self._receiver is not None:
            self._receiver.stand_by_no_more(name)

    def record(self, kind: str) -> KindRecord:
        """Return what has come of a kind."""
        return KindRecord() if self._receiver is None else self._receiver.record(kind)
