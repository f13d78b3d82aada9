"""Metrics of the daemon's process and of the disks that it writes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

Disks = Mapping[str, tuple[float, float]]
"""Free bytes, and all of them, of the file systems that hold the places; by place."""


def register_machine(registry: CollectorRegistry, disks: Callable[[], Disks]) -> None:
    """Add the metrics of this process, under Prometheus' own names, and those of its disks."""
    ProcessCollector(namespace="sortie", registry=registry)
    registry.register(DiskCollector(disks))


class DiskCollector(Collector):
    """Yields how full the disks are as ``read``, which returns at once, last knew it."""

    def __init__(self, read: Callable[[], Disks]) -> None:
        self._read = read

    def describe(self) -> list[GaugeMetricFamily]:
        """Name the metrics without reading them."""
        return list(_families({}))

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read once, and yield both gauges."""
        return _families(self._read())


def _families(disks: Disks) -> Iterator[GaugeMetricFamily]:
    free = GaugeMetricFamily(
        "sortie_disk_free_bytes", "Bytes that may still be written.", labels=("place",)
    )
    size = GaugeMetricFamily(
        "sortie_disk_size_bytes", "Bytes of the file system.", labels=("place",)
    )
    for place, (left, total) in disks.items():
        free.add_metric((place,), left)
        size.add_metric((place,), total)
    yield free
    yield size
