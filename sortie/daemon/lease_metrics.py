"""What metrics tell of leases. Importing it loads the library of metrics, which takes long."""

from __future__ import annotations

from sortie.daemon.candidacy import Candidacy
from sortie.resources.lease import boot_time
from sortie.telemetry.metrics.leases import LeaseGauges


def lease_gauges(candidacy: Candidacy) -> LeaseGauges:
    """Return what metrics tell of the lease of a workflow."""
    fleet = candidacy.fleet
    is_held = candidacy.is_held
    return LeaseGauges(
        held=is_held,
        renewal_age=boot_time() - candidacy.sent_at if is_held else None,
        failed_renewals=candidacy.counts.failed_renewals,
        refused_writes=candidacy.counts.refused_writes,
        candidates=candidacy.candidates,
        takeovers=None if fleet is None else fleet.endings.get(candidacy.workflow, {}),
    )
