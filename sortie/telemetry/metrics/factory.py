"""Make counters and histograms in a registry, each at 0 for the labels that are known beforehand.

A counter that exists at 0 from the start can be seen to rise by its first increase; one that
appears with it cannot.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

RUN_BUCKETS = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
"""Seconds that a turn, or a run, takes: half a second to two hours."""

REQUEST_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Seconds that a poll, a hook, or a start takes."""

Metric = TypeVar("Metric", Counter, Gauge, Histogram)


class MetricFactory:
    """Makes metrics; a label is given its values, or () where they are not known beforehand."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, name: str, text: str, **labels: Iterable[str]) -> Counter:
        """Make a counter ``sortie_NAME_total``."""
        return _begun(
            Counter(f"sortie_{name}", text, tuple(labels), registry=self._registry), labels
        )

    def gauge(self, name: str, text: str, **labels: Iterable[str]) -> Gauge:
        """Make a gauge ``sortie_NAME``."""
        made = Gauge(f"sortie_{name}", text, tuple(labels), registry=self._registry)
        return _begun(made, labels)

    def histogram(
        self, name: str, text: str, buckets: Sequence[float], **labels: Iterable[str]
    ) -> Histogram:
        """Make a histogram ``sortie_NAME``."""
        full, registry = f"sortie_{name}", self._registry
        made = Histogram(full, text, tuple(labels), registry=registry, buckets=buckets)
        return _begun(made, labels)


def rise(amount: float | None) -> float:
    """Return what a counter may grow by: unknown and nonsense are nothing."""
    return amount if amount is not None and math.isfinite(amount) and amount > 0 else 0


def _begun(metric: Metric, labels: Mapping[str, Iterable[str]]) -> Metric:
    for values in itertools.product(*labels.values()) if labels else ():
        metric.labels(*values)
    return metric
