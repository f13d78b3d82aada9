"""Metrics of the lease of a workflow, read on request; a workflow without a lease has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

ENDINGS = ("released", "moved", "drained", "unfit", "expired")
"""Why a daemon leads a workflow no more."""


class LeaseGauges(Struct, frozen=True, kw_only=True):
    """How the lease of a workflow stands. ``renewal_age`` are the seconds since the last renewal,
    None where this daemon does not lead; ``candidates`` are the living daemons that could lead it,
    and ``takeovers`` the leaderships of all daemons that ended, by reason: None where the server
    has not told, as a 0 that becomes the true number would look like many takeovers."""

    held: bool = False
    renewal_age: float | None = None
    failed_renewals: int = 0
    refused_writes: int = 0
    candidates: int | None = None
    takeovers: Mapping[str, int] | None = None


class LeaseCollector(Collector):
    """Yields the metrics as ``read`` returns them at that moment, none where it returns None."""

    def __init__(self, read: Callable[[], LeaseGauges | None]) -> None:
        self._read = read

    def describe(self) -> list[Metric]:
        """Name the metrics without reading them."""
        return list(_families(LeaseGauges()))

    def collect(self) -> Iterator[Metric]:
        """Read once, and yield every metric."""
        gauges = self._read()
        return iter(()) if gauges is None else _families(gauges)


def _families(gauges: LeaseGauges) -> Iterator[Metric]:
    held = float(gauges.held)
    yield GaugeMetricFamily("sortie_lease_held", "1 while this daemon leads.", value=held)
    yield GaugeMetricFamily("sortie_standby", "1 while this daemon stands by.", value=1 - held)
    age = GaugeMetricFamily("sortie_lease_renewal_age_seconds", "Time since the last renewal.")
    if gauges.renewal_age is not None:
        age.add_metric((), gauges.renewal_age)
    yield age
    candidates = GaugeMetricFamily("sortie_lease_candidates", "Living daemons that could lead.")
    if gauges.candidates is not None:
        candidates.add_metric((), gauges.candidates)
    yield candidates
    yield CounterMetricFamily(
        "sortie_lease_failed_renewals",
        "Tries to reach the server that failed while this daemon led.",
        value=gauges.failed_renewals,
    )
    yield CounterMetricFamily(
        "sortie_lease_refused_writes",
        "Writes of this daemon that were refused, as another one leads.",
        value=gauges.refused_writes,
    )
    takeovers = CounterMetricFamily(
        "sortie_lease_takeovers", "Ends of leaderships, of all daemons.", labels=("reason",)
    )
    if gauges.takeovers is not None:
        for reason in ENDINGS:
            takeovers.add_metric((reason,), gauges.takeovers.get(reason, 0))
    yield takeovers
