"""What the probes answer: is the daemon alive, and is it ready for work."""

from __future__ import annotations

from msgspec import Struct

from sortie.model.numbers import span

OVERDUE_LIMIT = 60.0
"""Seconds that the orchestrator may be late before the daemon counts as stuck."""


class Health(Struct, frozen=True, kw_only=True):
    """How the daemon is.

    ``reasons`` say why it is not ready, ``details`` what is worth knowing in any case; anyone who
    can reach the port may read them. ``overdue`` is for how many seconds the orchestrator's next
    round has been due, 0 while it waits for a time to come. ``standby``: another daemon does the
    work, and this one would take it over.
    """

    ready: bool
    standby: bool = False
    reasons: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    overdue: float = 0.0


Probe = tuple[int, dict[str, object]]
"""An HTTP status and what stands in the body."""


def liveness(health: Health) -> Probe:
    """Judge whether the daemon should be restarted."""
    if health.overdue <= OVERDUE_LIMIT:
        return 200, {"status": "ok"}
    late = f"the orchestrator has been due for {span(health.overdue)} and has not run"
    return 503, {"status": "stuck", "reasons": [late]}


def readiness(health: Health) -> Probe:
    """Judge whether the daemon does its work now, or stands by; a stuck one does not."""
    alive = liveness(health)
    if alive[0] != 200:
        return alive
    word = "standby" if health.standby else "ready"
    body: dict[str, object] = {"status": word if health.ready else "not ready"}
    if not health.ready:
        body["reasons"] = list(health.reasons)
    if health.details:
        body["details"] = list(health.details)
    return (200 if health.ready else 503), body
