"""Metrics that are read on request: of the last snapshot, of the process and of its disks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector


class Gauges(Struct, frozen=True, kw_only=True):
    """How things stand. ``ssh_host_usage`` counts runs by host; both mappings are empty where all
    runs are local. ``tracker_budgets`` are what is left of a tracker's limits, and these, by name;
    None where the tracker does not say. ``rule_slots`` are those that a rule's runs use, that are
    guaranteed to it, and its limit, None where it has none; empty where there are no rules.
    ``notifications`` are those that wait for a target, that are dead, and the seconds for which
    the oldest waits; empty where there are no targets."""

    sessions_running: int = 0
    sessions_retrying: int = 0
    issues_held: int = 0
    slots_available: int = 0
    active_sessions_elapsed_seconds: float = 0.0
    dispatch_paused: bool = False
    workflow_valid: bool = True
    store_writable: bool = True
    ready: bool = True
    issues_queued: int = 0
    issues_blocked: int = 0
    workspaces_kept: int = 0
    watched_pull_requests: int = 0
    usage_limited: bool = False
    daily_budget_spent: bool = False
    spent_today: Mapping[str, float] = field(default_factory=dict)
    ssh_host_usage: Mapping[str, int] = field(default_factory=dict)
    ssh_host_up: Mapping[str, bool] = field(default_factory=dict)
    tracker_budgets: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    rule_slots: Mapping[str, tuple[int, int | None, int | None]] = field(default_factory=dict)
    notifications: Mapping[str, tuple[int, int, float]] = field(default_factory=dict)


class GaugeCollector(Collector):
    """Yields the gauges as ``read`` returns them at that moment."""

    def __init__(self, read: Callable[[], Gauges]) -> None:
        self._read = read

    def describe(self) -> list[GaugeMetricFamily]:
        """Name the metrics without reading them, so that registering needs no snapshot."""
        return list(_families(Gauges()))

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read once, and yield every gauge."""
        return _families(self._read())


_PLAIN = (
    ("sessions_running", "Runs under way.", "sessions_running"),
    ("sessions_retrying", "Issues that wait to run again.", "sessions_retrying"),
    ("issues_held", "Issues that are parked.", "issues_held"),
    ("issues_queued", "Issues that could run and wait for room.", "issues_queued"),
    ("issues_blocked", "Issues that cannot run before they change.", "issues_blocked"),
    (
        "workspaces_kept",
        "Workspaces of finished issues that are kept for the work in them.",
        "workspaces_kept",
    ),
    (
        "watched_pull_requests",
        "Pull requests that are watched until they are merged or closed.",
        "watched_pull_requests",
    ),
    ("slots_available", "Runs that could be started now.", "slots_available"),
    (
        "active_sessions_elapsed_seconds",
        "Seconds that the runs under way have taken so far, in total.",
        "active_sessions_elapsed_seconds",
    ),
    ("dispatch_paused", "1 while dispatch is paused.", "dispatch_paused"),
    ("workflow_valid", "1 while WORKFLOW.md is valid.", "workflow_valid"),
    (
        "agent_usage_limited",
        "1 while no run is started because of the agent's usage limit.",
        "usage_limited",
    ),
    (
        "daily_budget_spent",
        "1 while no run is started because the budget of the day is used up.",
        "daily_budget_spent",
    ),
    ("store_writable", "1 while records can be written.", "store_writable"),
    ("ready", "1 while /readyz answers 200.", "ready"),
)
"""Gauges without labels: the name, what it tells, and its field."""

_RULE_SLOTS = (
    ("used", "Runs of a rule under way."),
    ("guaranteed", "Slots that no other rule is given."),
    ("limit", "Runs of a rule that there may be at once."),
)
_NOTIFICATIONS = (
    ("waiting", "Notifications that wait for a target."),
    ("dead", "Notifications that were given up."),
    ("oldest_age_seconds", "For how long the oldest waits."),
)


def _families(gauges: Gauges) -> Iterator[GaugeMetricFamily]:
    for name, text, plain in _PLAIN:
        yield GaugeMetricFamily(f"sortie_{name}", text, value=float(getattr(gauges, plain)))
    yield _by("host", "ssh_host_usage", "Runs under way on a host.", gauges.ssh_host_usage)
    yield _by("host", "ssh_host_up", "1 while a host can be reached.", gauges.ssh_host_up)
    yield _by("unit", "spent_today", "What was used on this day.", gauges.spent_today)
    budgets = gauges.tracker_budgets.items()
    remaining = {name: left for name, (left, _) in budgets}
    limits = {name: limit for name, (_, limit) in budgets}
    yield _by("budget", "tracker_budget_remaining", "What may still be asked.", remaining)
    yield _by("budget", "tracker_budget_limit", "What may be asked in all.", limits)
    for at, (name, text) in enumerate(_RULE_SLOTS):
        values = {rule: slots[at] for rule, slots in gauges.rule_slots.items()}
        yield _by("rule", f"rule_slots_{name}", text, values)
    for at, (name, text) in enumerate(_NOTIFICATIONS):
        counts = {target: found[at] for target, found in gauges.notifications.items()}
        yield _by("target", f"notifications_{name}", text, counts)


def _by(label: str, name: str, text: str, values: Mapping[str, float | None]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"sortie_{name}", text, labels=(label,))
    for key, value in values.items():
        if value is not None:
            family.add_metric((key,), float(value))
    return family


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
        return list(_disk_families({}))

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read once, and yield both gauges."""
        return _disk_families(self._read())


def _disk_families(disks: Disks) -> Iterator[GaugeMetricFamily]:
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
