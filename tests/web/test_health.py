"""Health: what the probes say in each condition."""

from __future__ import annotations

import pytest

from sortie.web.health import OVERDUE_LIMIT, Health, Probe, liveness, readiness

OK = (200, {"status": "ok"})
READY = (200, {"status": "ready"})
STUCK = (
    503,
    {
        "status": "stuck",
        "reasons": ["the orchestrator has been due for 1m01s and has not run"],
    },
)


@pytest.mark.parametrize(
    ("health", "live", "ready"),
    [
        (Health(ready=True), OK, READY),
        (Health(ready=True, overdue=OVERDUE_LIMIT), OK, READY),
        (Health(ready=True, overdue=OVERDUE_LIMIT + 1), STUCK, STUCK),
        (
            Health(ready=False, reasons=("database is read-only", "no tracker")),
            OK,
            (503, {"status": "not ready", "reasons": ["database is read-only", "no tracker"]}),
        ),
        (Health(ready=False, overdue=OVERDUE_LIMIT + 1), STUCK, STUCK),
        (
            Health(ready=True, standby=True, details=("vm:1 leads",)),
            OK,
            (200, {"status": "standby", "details": ["vm:1 leads"]}),
        ),
        (
            Health(ready=False, standby=True, reasons=("no database",)),
            OK,
            (503, {"status": "not ready", "reasons": ["no database"]}),
        ),
        (
            Health(ready=True, details=("3 requests left",)),
            OK,
            (200, {"status": "ready", "details": ["3 requests left"]}),
        ),
        (
            Health(ready=False, reasons=("no tracker",), details=("3 requests left",)),
            OK,
            (
                503,
                {
                    "status": "not ready",
                    "reasons": ["no tracker"],
                    "details": ["3 requests left"],
                },
            ),
        ),
    ],
)
def test_what_the_probes_say(health: Health, live: Probe, ready: Probe) -> None:
    """Only a stuck loop asks for a restart; whatever keeps work from being done is not ready."""
    assert liveness(health) == live
    assert readiness(health) == ready
