"""The port between HTTP and a process of several workflows, and the view that programs get."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal, Protocol

from msgspec import Struct

from sortie.web.dashboard.painter import Painter
from sortie.web.health import Health
from sortie.web.leases import KnownDaemonView, LeaseView
from sortie.web.source import DaemonSource
from sortie.web.state import Counts, SlotsView
from sortie.web.times import Time

WorkflowStatus = Literal["starting", "standby", "broken", "running", "paused", "draining", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStateView:
    """A workflow of a process: ``url`` is where it is served below this address, and its whole
    state at ``url`` with ``api/v1/state``.

    ``errors`` say why it is broken, or what is wrong with its file while older settings are in
    force, and ``reasons`` why it is not ready. ``counts`` and ``slots`` are null while it does not
    work. ``guaranteed`` and ``weight`` are its share of the common slots. ``lease`` says which
    daemon leads it, null where its database is a file.
    """

    name: str
    path: str
    url: str
    status: WorkflowStatus
    ready: bool
    errors: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    counts: Counts | None = None
    slots: SlotsView | None = None
    guaranteed: int = 0
    weight: int = 1
    lease: LeaseView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralStateView:
    """All workflows of a process; ``used`` of its ``slots`` are taken by their runs. ``daemons``
    are those of their databases, empty where these are files."""

    generated_at: Time
    slots: int
    used: int
    workflows: tuple[WorkflowStateView, ...]
    daemons: tuple[KnownDaemonView, ...] = ()


class ServedWorkflow(Struct, frozen=True):
    """A workflow that works: what is asked of it, and what paints its parts of pages."""

    name: str
    daemon: DaemonSource
    painter: Painter


class SeveralSource(Protocol):
    """A running process of several workflows."""

    def state(self) -> SeveralStateView:
        """Return how all workflows stand."""
        ...

    def working(self) -> Sequence[ServedWorkflow]:
        """Return those that work."""
        ...

    def health(self) -> Health:
        """Return whether those that are not broken do their work."""
        ...

    def secrets(self) -> Set[str]:
        """Return the secrets of all."""
        ...
