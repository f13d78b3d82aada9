"""Messages of the daemon to the service manager that has started it, see sd_notify(3).

A unit with ``Type=notify`` counts as started when the daemon serves; the manager ends and restarts
it when its signs of life stop (``WatchdogSec=``).

Rule 1: the daemon never waits here: what the manager cannot take now is sent with a later pulse.
Rule 2: signs of life come from trio's loop, and only while the orchestrator is in time, by the
measure of ``/livez``.
Rule 3: each variable takes one line, whatever a text from outside holds.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping

import trio
from msgspec import Struct

from sortie.daemon.daemon_view import DaemonView
from sortie.facts import (
    DaemonStarted,
    DaemonStopping,
    Fact,
    ServiceManagerUnreachable,
    WorkflowReloaded,
)
from sortie.scheduler import Snapshot
from sortie.telemetry import Publish
from sortie.web.health import OVERDUE_LIMIT

PULSE = 5.0
"""Seconds between two signs of life, or fewer: a third of what the manager waits for."""

STARTING = 30.0
"""Seconds that the manager is asked to wait for the next pulse of a daemon that starts."""

STATUS_LINE_LIMIT = 400
"""Characters of a status, which a manager shows in one line."""

_LASTING = (b"READY=", b"RELOADING=", b"STOPPING=")


class ServiceStanding(Struct, frozen=True, kw_only=True):
    """Whether the daemon is live, and its status line."""

    live: bool
    status: str


class ServiceManager:
    """The manager behind a socket; without an address, messages are dropped.

    As a sink it reports the start, reloads and the end.
    """

    def __init__(self, address: str | None, watchdog: float | None, publish: Publish) -> None:
        self._address = address
        self._watchdog = watchdog
        self._publish = publish
        self._unsent: list[bytes] = []
        self._started = False
        self._reloading = False
        self._status = ""
        self._has_published_trouble = False
        # Kept open: there may be no descriptor when a message is due.
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if address else None
        if self._socket is not None:
            self._socket.setblocking(False)

    @classmethod
    def of(cls, environ: Mapping[str, str], publish: Publish) -> ServiceManager:
        """Return the manager that an environment names; other kinds of addresses are ignored."""
        address = environ.get("NOTIFY_SOCKET", "")
        if not address.startswith(("/", "@")):
            return cls(None, None, publish)
        return cls(address.replace("@", "\0", 1), _watchdog_of(environ), publish)

    def __call__(self, fact: Fact) -> None:
        """Tell what a fact means to the manager."""
        if isinstance(fact, DaemonStarted):
            self.started()
        elif isinstance(fact, WorkflowReloaded) and self._reloading:
            self._reloading = False
            self._tell("READY=1")
        elif isinstance(fact, DaemonStopping):
            self._started = True  # the limit for a start is over
            self._tell("STOPPING=1", f"STATUS=stopping, running {fact.running}")

    def started(self) -> None:
        """Tell that the start is over."""
        self._started = True
        self._tell("READY=1", self._news("started"))

    def reloading(self) -> None:
        """Tell that the workflow file is being read again, until a fact says that it has been."""
        self._reloading = True
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._tell("RELOADING=1", f"MONOTONIC_USEC={now}")

    async def pulse(self, look: Callable[[], ServiceStanding | None]) -> None:
        """Give signs of life and tell how the daemon stands, until cancelled.

        A look is None while the daemon starts.
        """
        if self._address is None:
            return
        pause = min(PULSE, self._watchdog / 3) if self._watchdog else PULSE
        while True:
            self._beat(look())
            await trio.sleep(pause)

    def _beat(self, standing: ServiceStanding | None) -> None:
        lines = []
        if standing is None and not self._started:
            lines = [f"EXTEND_TIMEOUT_USEC={STARTING * 1e6:.0f}", self._news("starting")]
        elif standing is not None:
            alive = self._watchdog is not None and standing.live
            lines = ["WATCHDOG=1" if alive else "", self._news(standing.status)]
        self._tell(*filter(None, lines))

    def _news(self, status: str) -> str:
        """Return the assignment of a status that the manager does not know, or nothing."""
        shown = " ".join(status.split())[:STATUS_LINE_LIMIT]
        known, self._status = self._status, shown
        return f"STATUS={shown}" if shown != known else ""

    def _tell(self, *lines: str) -> None:
        if lines:
            self._unsent.append("\n".join(lines).encode("utf-8", "replace"))
        if self._socket is None:
            self._unsent.clear()
        while self._unsent and self._send(self._unsent[0]):
            del self._unsent[0]

    def _send(self, message: bytes) -> bool:
        """Send a message; False where it may be sent later."""
        assert self._socket is not None
        assert self._address is not None
        try:
            self._socket.sendto(message, self._address)
        except BlockingIOError:
            # A late sign of life is useless, and the next status replaces this one.
            self._unsent = [each for each in self._unsent if each.startswith(_LASTING)]
            self._status = ""
            return False
        except OSError as exc:
            if not self._has_published_trouble:
                self._has_published_trouble = True
                error = exc.strerror or str(exc)
                self._publish(ServiceManagerUnreachable(socket=self._shown, error=error))
        return True

    @property
    def _shown(self) -> str:
        return (self._address or "").replace("\0", "@")


def _watchdog_of(environ: Mapping[str, str]) -> float | None:
    """Return for how many seconds the manager waits for a sign, None where it does not."""
    try:
        microseconds = int(environ.get("WATCHDOG_USEC", ""))
        process = int(environ.get("WATCHDOG_PID", os.getpid()))
    except ValueError:
        return None
    return microseconds / 1e6 if microseconds > 0 and process == os.getpid() else None


def standing_of(view: DaemonView) -> ServiceStanding:
    """Return whether the daemon is live, by the measure of ``/livez``, and its status line."""
    snapshot, health = view.orchestrator.snapshot(), view.health()
    parts = [_counts(snapshot)]
    if not view.workflow().valid:
        parts.append("the workflow file has errors and older settings are in force")
    if not snapshot.draining and health.reasons:
        parts.append(f"not ready: {'; '.join(health.reasons)}")
    return ServiceStanding(live=health.overdue <= OVERDUE_LIMIT, status="; ".join(parts))


def _counts(snapshot: Snapshot) -> str:
    words = ["stopping"] if snapshot.draining else []
    words += [f"running {len(snapshot.worked)}", f"waiting {len(snapshot.waiting)}"]
    words += [f"held {len(snapshot.held)}"] if snapshot.held else []
    words += ["paused"] if snapshot.paused and not snapshot.draining else []
    return ", ".join(words)
