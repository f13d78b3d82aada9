"""What a workflow has of the process that it runs in, alone or beside others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import trio

from sortie.config.settings import Settings
from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.reloader import Reloader
from sortie.daemon.transports import RemoteHosts, TransportPool
from sortie.orchestrator import Orchestrator
from sortie.resources import Shortages
from sortie.scheduler.grants import SlotGrant
from sortie.telemetry import Publish
from sortie.telemetry.live_runs import LiveRuns
from sortie.transports.local import IsolationInForce, LocalTransport
from sortie.web.webhooks.records import KindRecord


class WorkflowEnding(Protocol):
    """How the end of the process reaches a workflow: it cancels ``recovery``, or has the
    ``orchestrator`` shut down once there is one. ``asked``: the process is ending."""

    recovery: trio.CancelScope
    orchestrator: Orchestrator | None

    @property
    def asked(self) -> bool:
        """Whether the process is ending."""
        ...


class DaemonProcess(Protocol):
    """The process of one or several workflows.

    ``token`` is that of its HTTP server, ``isolation`` what ends processes on this machine, by the
    transport ``local``, and ``hosts`` are the connections to others; None where the workflow may
    have its own. ``sinks`` are told what happens in the workflow. ``grant`` are the slots to begin
    with, None for no limit.
    """

    @property
    def token(self) -> str: ...
    @property
    def isolation(self) -> IsolationInForce: ...
    @property
    def local(self) -> LocalTransport | None: ...
    @property
    def hosts(self) -> RemoteHosts | None: ...
    @property
    def sinks(self) -> Sequence[Publish]: ...
    @property
    def shortages(self) -> Shortages: ...
    @property
    def grant(self) -> SlotGrant | None: ...

    def hide_in_log(self, secrets: frozenset[str]) -> None:
        """Have these secrets of the workflow appear in no line of the log."""
        ...

    async def begin(
        self, services: trio.Nursery, transports: TransportPool, live_runs: LiveRuns
    ) -> WorkflowEnding:
        """Take the workflow in; it ends when the process does."""
        ...

    async def serve(
        self, services: trio.Nursery, settings: Settings, view: DaemonView, reloader: Reloader
    ) -> str | None:
        """Answer for the workflow over HTTP, and have its file read again when the process is asked
        to; return the address, None where there is no server."""
        ...

    def deliveries(self, kind: str) -> KindRecord:
        """Return what has come of a kind of webhook to this process."""
        ...

    def work_until_idle(
        self, services: trio.Nursery, orchestrator: Orchestrator
    ) -> Sequence[Publish]:
        """Have the process end when there is nothing left to do; return further sinks."""
        ...

    def crashing(self) -> None:
        """Know that the workflow cannot end in good order any more."""
        ...

    def finished(self, transports: TransportPool) -> None:
        """Let the workflow go, whose work is over."""
        ...
