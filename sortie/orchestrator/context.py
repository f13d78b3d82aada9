"""What the orchestrator works with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sortie.store import Store
from sortie.telemetry import Publish
from sortie.trackers import Tracker
from sortie.worker import RunContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What a preflight found: ``fault`` forbids any dispatch and any poll; ``hindrance`` says
    why no agent can be launched, and ``shortage`` what this machine is short of. None: all is
    well."""

    fault: str | None = None
    hindrance: str | None = None
    shortage: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorContext:
    """Ports and callables. ``run_context_for`` gives the tools for a run on a host by the settings
    in force; ``wall`` is the time in Unix seconds."""

    store: Store
    tracker: Tracker
    publish: Publish
    run_context_for: Callable[[str], RunContext]
    preflight: Callable[[], Awaitable[Readiness]]
    wall: Callable[[], float]
