"""The HTTP service of a daemon: it takes the port at once, and answers after the first poll."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from sortie.config.settings import ServerSettings, Settings
from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.disk_space import DiskSpace, places_of
from sortie.daemon.webhook_service import WebhookService
from sortie.facts import Fact, PollCompleted
from sortie.resources import FIRST_PAUSE, LONGEST_PAUSE, run_in_thread, shortage_behind
from sortie.telemetry import Publish
from sortie.web.access import Access
from sortie.web.listener import HttpListener, ListenAddress, listen
from sortie.web.sessions import BrowserSessions

if TYPE_CHECKING:
    from sortie.daemon.drain import ProcessDrain
    from sortie.daemon.http_front import HttpFront
    from sortie.daemon.http_server import HttpServer

FIRST_POLL = 1.0
"""Seconds for which the loading of the server waits for the first poll."""

FIRST_LOOK = 1.0
"""Seconds for which the first answer waits for a look at the disks."""

_NO_DESCRIPTOR = os.strerror(errno.EMFILE)


async def open_listener(server: ServerSettings, token: str) -> tuple[HttpListener, Access]:
    """Take the port; return it with the rules for who may ask. Raises ListenError."""
    listener = await listen(
        ListenAddress(
            host=server.host,
            port=server.port,
            asked=server.port_given,
            token_given=server.auth_token is not None,
        )
    )
    access = Access(
        host=server.host,
        loopback=listener.loopback,
        token=token,
        sessions=BrowserSessions(trio.current_time),
    )
    return listener, access


class HttpService:
    """A sink of facts, which keeps them until the server is loaded and counts them.

    Clients that connect before wait in the listener's queue. Without a port nothing is counted,
    as nobody can ask for metrics.
    """

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._kept: list[Fact] = []
        self._polled = trio.Event()
        self._count: Publish = self._kept.append
        self.webhooks = WebhookService(publish)

    def __call__(self, fact: Fact) -> None:
        """Count a fact, now or later."""
        self._count(fact)
        if isinstance(fact, PollCompleted):
            self._polled.set()

    async def start(
        self,
        services: trio.Nursery,
        settings: Settings,
        token: str,
        view: DaemonView,
        front: HttpFront | None = None,
    ) -> str | None:
        """Take the port, unless a ``front`` has it, and return the address for commands on this
        machine; None: no server."""
        server = settings.server
        if front is not None:
            front.drain.views = lambda: (view,)
            services.start_soon(self._lead, front, view, places_of(settings))
            return front.url
        await self.webhooks.open(server, settings.webhooks.port)
        if server.port == 0:
            self._count = lambda _fact: None
            self._kept.clear()
            services.start_soon(self._receive_alone, view)
            return None
        listener, access = await open_listener(server, token)
        services.start_soon(self._serve, listener, access, view, places_of(settings))
        return listener.local_url

    async def _receive_alone(self, view: DaemonView) -> None:
        """Take deliveries of webhooks on a port of their own, if there is one, and serve nothing
        else."""
        if self.webhooks.has_own_port:
            async with self._receiving(view):
                await trio.sleep_forever()

    @asynccontextmanager
    async def _receiving(self, view: DaemonView) -> AsyncIterator[None]:
        """Take deliveries for the length of the block."""
        try:
            await self.webhooks.load()
            self.webhooks.lead("", view.orchestrator, self._publish)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.webhooks.run)
                yield
                nursery.cancel_scope.cancel()
        finally:
            self.webhooks.close()

    async def _serve(
        self,
        listener: HttpListener,
        access: Access,
        view: DaemonView,
        places: Mapping[str, str],
    ) -> None:
        try:
            async with self._opened(view, access, places) as server, self._receiving(view):
                await server.run(listener, self.webhooks.before(server.app))
        finally:
            listener.close()

    async def _lead(self, front: HttpFront, view: DaemonView, places: Mapping[str, str]) -> None:
        self.webhooks = front.webhooks
        async with self._opened(view, front.access, places, front.drain) as server:
            await front.lead(server, view.orchestrator, self._publish)

    @asynccontextmanager
    async def _opened(
        self,
        view: DaemonView,
        access: Access,
        places: Mapping[str, str],
        drain: ProcessDrain | None = None,
    ) -> AsyncIterator[HttpServer]:
        """Give the server after the first poll."""
        with trio.move_on_after(FIRST_POLL):
            await self._polled.wait()
        async with trio.open_nursery() as nursery:
            disks = DiskSpace(nursery, places)
            with trio.move_on_after(FIRST_LOOK):
                await disks.look()
            server = await self._loaded(view, disks, access, drain)
            for fact in self._kept:
                server(fact)
            self._kept.clear()
            self._count = server  # nothing was awaited since the kept facts were counted
            yield server

    async def _loaded(
        self, view: DaemonView, disks: DiskSpace, access: Access, drain: ProcessDrain | None
    ) -> HttpServer:
        """Load the server in a thread, and again until there are descriptors for its files."""

        def load() -> HttpServer:
            from sortie.daemon.http_server import HttpServer

            return HttpServer(view, disks, access, self._publish, drains=drain)

        pause = FIRST_PAUSE
        while True:
            try:
                return await run_in_thread(load)
            except Exception as exc:
                # Without a descriptor a library fails as an ImportError, a codec as an error of
                # the template that needs it.
                if shortage_behind(exc) is None and _NO_DESCRIPTOR not in str(exc):
                    raise
            await trio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
