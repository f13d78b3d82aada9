"""The HTTP service of a process of several workflows; it listens before any of them begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from sortie.config.settings import ServerSettings, Settings
from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.http_service import open_listener
from sortie.daemon.several.workflow_states import WorkflowStates
from sortie.facts import Fact
from sortie.resources import run_in_thread
from sortie.telemetry import Publish

if TYPE_CHECKING:
    from sortie.daemon.several.http_server import SeveralHttpServer


class SharedHttp:
    """See Mount; without a port nothing is served and nothing is counted."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._server: SeveralHttpServer | None = None
        self._url = ""

    async def start(
        self, services: trio.Nursery, settings: ServerSettings, token: str, states: WorkflowStates
    ) -> None:
        """Take the port and serve, without any workflow yet. Raises ListenError."""
        if settings.port == 0:
            return
        listener, access = await open_listener(settings, token)

        def load() -> SeveralHttpServer:
            from sortie.daemon.several.http_server import SeveralHttpServer

            return SeveralHttpServer(states, access, self._publish)

        self._url = listener.local_url
        try:
            self._server = await run_in_thread(load)
        except BaseException:
            listener.close()
            raise
        services.start_soon(self._server.run, listener)

    async def mount(
        self, services: trio.Nursery, name: str, settings: Settings, view: DaemonView
    ) -> tuple[str | None, Publish]:
        """See Mount."""
        if self._server is None:
            return None, _ignore
        count = await self._server.mount(services, name, settings, view)
        return f"{self._url}workflows/{name}/", count

    def unmount(self, name: str) -> None:
        """See Mount."""
        if self._server is not None:
            self._server.unmount(name)


def _ignore(_fact: Fact) -> None:
    """Count nothing, as nobody can ask."""
