"""What the orchestrator works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sortie.orchestrator.preflight import Preflight
from sortie.store import Store
from sortie.telemetry import Publish
from sortie.trackers import Tracker
from sortie.worker import RunContext


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorContext:
    """Ports and callables. ``run_context_for`` gives the tools for a run on a host by the settings
    in force; ``wall`` is the time in Unix seconds. ``compares`` tells whether the tracker itself
    moves an issue only where it still stands as it is said to (COMPARE_AND_SET)."""

    store: Store
    tracker: Tracker
    publish: Publish
    run_context_for: Callable[[str], RunContext]
    preflight: Preflight
    wall: Callable[[], float]
    compares: bool = False
