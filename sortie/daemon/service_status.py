"""How the daemon stands, in the one line that ``systemctl status`` shows."""

from __future__ import annotations

from sortie.daemon.service_manager import Standing
from sortie.daemon.views import DaemonView
from sortie.scheduler import Snapshot
from sortie.web.health import OVERDUE_LIMIT


def standing_of(view: DaemonView) -> Standing:
    """Return whether the daemon comes round, by the measure of ``/livez``, and how it stands."""
    snapshot, health = view.orchestrator.snapshot(), view.health()
    parts = [_counts(snapshot)]
    if not view.workflow().valid:
        parts.append("the workflow file has errors and older settings are in force")
    if not snapshot.draining and health.reasons:
        parts.append(f"not ready: {'; '.join(health.reasons)}")
    return Standing(live=health.overdue <= OVERDUE_LIMIT, status="; ".join(parts))


def _counts(snapshot: Snapshot) -> str:
    words = ["stopping"] if snapshot.draining else []
    words += [f"running {len(snapshot.worked)}", f"waiting {len(snapshot.waiting)}"]
    words += [f"held {len(snapshot.held)}"] if snapshot.held else []
    words += ["paused"] if snapshot.paused and not snapshot.draining else []
    return ", ".join(words)
