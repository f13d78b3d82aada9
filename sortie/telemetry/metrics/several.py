"""The metrics of several workflows as one page: each time series has the label ``workflow``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_OF_PROCESS = "sortie_process_"


def several_registry(
    registries: Callable[[], Mapping[str, CollectorRegistry]],
) -> CollectorRegistry:
    """Return a registry of what those of all workflows hold now, and of the process."""
    registry = CollectorRegistry()
    ProcessCollector(namespace="sortie", registry=registry)
    registry.register(_Labelled(registries))
    return registry


class _Labelled(Collector):
    """Yields the metrics of all workflows; those of the process are not told again."""

    def __init__(self, registries: Callable[[], Mapping[str, CollectorRegistry]]) -> None:
        self._registries = registries

    def describe(self) -> list[Metric]:
        """Name nothing: registering needs no look."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield each metric once, with the samples of all workflows."""
        found: dict[str, Metric] = {}
        for name, registry in self._registries().items():
            for metric in registry.collect():
                if metric.name.startswith(_OF_PROCESS):
                    continue
                merged = found.setdefault(
                    metric.name, Metric(metric.name, metric.documentation, metric.type, metric.unit)
                )
                merged.samples += [
                    sample._replace(labels={"workflow": name, **sample.labels})
                    for sample in metric.samples
                ]
        yield from found.values()
