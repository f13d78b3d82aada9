"""The port between HTTP and a process of several workflows, and the view that programs get."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal, Protocol

from msgspec import Struct

from sortie.web.dashboard.painter import Painter
from sortie.web.health import Health
from sortie.web.leases import KnownDaemonView, LeaseView
from sortie.web.state import Counts, SlotsView, StateView
from sortie.web.times import Time

WorkflowStatus = Literal["starting", "standby", "broken", "running", "paused", "draining", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStateView:
    """A workflow of a process: ``url`` is where it is served below this address, and its whole
    state at ``url`` with ``api/v1/state``.

    ``errors`` say why it is broken, or what is wrong with its file while older settings are in
    force, and ``reasons`` why it is not ready. ``counts`` and ``slots`` are null while it does not
    work. ``guaranteed`` and ``weight`` are its share of the common slots. ``lease`` says which
    daemon leads it, null where its database is a file. Of a workflow for which this process stands
    by, counts and slots are those of its leader.
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
    are those of their databases, empty where these are files. ``drain`` says how far the process
    has handed its workflows over, null where it is not drained."""

    generated_at: Time
    slots: int
    used: int
    workflows: tuple[WorkflowStateView, ...]
    daemons: tuple[KnownDaemonView, ...] = ()
    drain: Literal["draining", "drained"] | None = None


class OverviewSource(Protocol):
    """A workflow whose rows can be shown."""

    def overview(self, waiting: int) -> StateView:
        """See DaemonSource."""
        ...


class ServedWorkflow(Struct, frozen=True):
    """A workflow that works, here or elsewhere: what is asked of it, and what paints its parts of
    pages."""

    name: str
    daemon: OverviewSource
    painter: Painter


class SeveralSource(Protocol):
    """A running process of several workflows."""

    async def look(self) -> None:
        """Ask the leaders of workflows for which this process stands by how these stand."""
        ...

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
