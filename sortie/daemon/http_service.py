"""The HTTP server of a daemon, and the file by which commands on this machine find it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TypeVar

import trio

from sortie.config import Settings
from sortie.daemon.disk_space import DiskSpace, places_of
from sortie.daemon.endpoint_file import EndpointFile, endpoint_of_this_process
from sortie.daemon.views import DaemonView
from sortie.resources import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Shortage,
    run_in_thread,
    shortage_behind,
)
from sortie.telemetry import Publish, facts
from sortie.telemetry.facts import Fact
from sortie.web.access import Access
from sortie.web.controls import Controls
from sortie.web.listener import Endpoint, Listener, listen
from sortie.web.redaction import Redaction
from sortie.web.sessions import Sessions
from sortie.workflow import Workflow

FIRST_POLL = 1.0
"""Seconds for which the first poll goes before the loading of the server."""

FIRST_LOOK = 1.0
"""Seconds that the first page of metrics may wait for a look at the disks."""

_SERVER = "sortie.daemon.http_server"
_NO_DESCRIPTOR = os.strerror(errno.EMFILE)

T = TypeVar("T")


class HttpService:
    """Takes the port at once, and answers when the first poll is over.

    To load what answers takes longer than all that leads to that poll; who connects meanwhile
    waits in the listener's queue. As a sink it keeps what was published before, and counts it
    then. Without a port nobody can ask for metrics, and nothing is counted.
    """

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._kept: list[Fact] = []
        self._polled = trio.Event()
        self._take: Publish = self._keep

    def __call__(self, fact: Fact) -> None:
        """Count a fact, now or later."""
        self._take(fact)

    def _keep(self, fact: Fact) -> None:
        self._kept.append(fact)
        if isinstance(fact, facts.PollCompleted):
            self._polled.set()

    async def start(
        self,
        services: trio.Nursery,
        settings: Settings,
        token: str,
        view: DaemonView,
        controls: Controls,
    ) -> str | None:
        """Take the port and return the address for commands on this machine; None: no server."""
        server = settings.server
        if server.port == 0:
            self._take = _forget
            self._kept.clear()
            return None
        listener = await listen(
            Endpoint(
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
            sessions=Sessions(trio.current_time),
        )
        places = places_of(settings)
        services.start_soon(self._serve, listener, access, (view, controls), places)
        return listener.local_url

    async def _serve(
        self,
        listener: Listener,
        access: Access,
        daemon: tuple[DaemonView, Controls],
        places: Mapping[str, str],
    ) -> None:
        view, controls = daemon
        try:
            with trio.move_on_after(FIRST_POLL):
                await self._polled.wait()
            await _once_there_are_descriptors(partial(import_module, _SERVER))
            from sortie.daemon.http_server import (
                Metrics,
                Shown,
                application,
                dashboard_of,
                live_events,
                serve,
            )

            async with trio.open_nursery() as nursery:
                disks = DiskSpace(nursery, places)
                with trio.move_on_after(FIRST_LOOK):
                    await disks.look()
                redaction = Redaction(view.secrets)
                dashboard = await _once_there_are_descriptors(
                    partial(dashboard_of, view, controls, redaction)
                )
                live = live_events(view, dashboard, redaction)
                metrics = Metrics(view.gauges, disks.known)

                def take(fact: Fact) -> None:
                    metrics.count(fact)
                    live.stir(fact)

                # Nothing is awaited here: what is published meanwhile would be counted by nobody.
                for fact in self._kept:
                    metrics.count(fact)
                self._kept.clear()
                self._take = take
                shown = Shown(
                    view=view,
                    metrics=metrics,
                    live=live,
                    dashboard=dashboard,
                    redaction=redaction,
                )
                app = application(shown, controls, access, self._publish)
                nursery.start_soon(live.run, self._publish)
                await serve(app, listener, self._publish)
        finally:
            listener.close()


async def _once_there_are_descriptors(make: Callable[[], T]) -> T:
    """Do in a thread what reads files, libraries above all, and again until nothing is short."""
    pause = FIRST_PAUSE
    while True:
        try:
            return await run_in_thread(make)
        except Exception as exc:
            # A library that cannot be opened for want of a descriptor is an ImportError, and a
            # codec that cannot an error of the template that needs it.
            if shortage_behind(exc) is None and _NO_DESCRIPTOR not in str(exc):
                raise
        await trio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def _forget(_: Fact) -> None:
    pass


async def write_endpoint_file(
    workflow: Workflow, url: str | None, token: str, publish: Publish
) -> EndpointFile:
    """Tell commands where this daemon is; without that it works all the same."""
    endpoint = endpoint_of_this_process(url=url, token=token, workflow=str(workflow.path))
    endpoint_file = EndpointFile(workflow.settings.db_path, endpoint)
    try:
        await run_in_thread(endpoint_file.write)
    except (OSError, Shortage) as exc:
        error = getattr(exc, "strerror", None) or str(exc)
        publish(facts.ControlUnavailable(path=endpoint_file.path, error=error))
    return endpoint_file
