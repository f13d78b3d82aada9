"""The page of metrics names what there is: types, labels, and the values of labels."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from sortie.daemon.disk_space import places_of
from sortie.facts import (
    DaemonStarted,
    HttpAnswered,
    NotificationFailed,
    NotificationsGivenUp,
    NotificationsSent,
    WarmPodsCounted,
)
from sortie.telemetry.metrics import MetricsSink
from sortie.telemetry.metrics.gauges import GaugeCollector, Gauges, register_machine
from sortie.telemetry.metrics.leases import LeaseCollector, LeaseGauges
from tests.docs.pages import page, table, tables, word, words
from tests.worker.rig import settings_of

TEXT = page("metrics.md")
OPEN = {
    "agent",
    "rule",
    "host",
    "budget",
    "route",
    "status",
    "version",
    "python_version",
    "target",
    "le",
}
"""Labels whose values are not known beforehand."""


def registry() -> CollectorRegistry:
    """Return a registry in which every metric has a sample."""
    made = CollectorRegistry()
    sink = MetricsSink(made)
    gauges = Gauges(
        sessions_running=0,
        sessions_retrying=0,
        issues_held=0,
        slots_available=0,
        active_sessions_elapsed_seconds=0.0,
        dispatch_paused=False,
        workflow_valid=True,
        store_writable=True,
        spent_today={"credits": 1.0, "tokens": 2.0, "usd": 1.5},
        ssh_host_usage={"h": 1},
        ssh_host_up={"h": True},
        tracker_budgets={"requests": (1, 2)},
        rule_slots={"docs": (0, 0, 1)},
        notifications={"slack": (1, 0, 2.0)},
    )
    made.register(GaugeCollector(lambda: gauges))
    lease = LeaseGauges(renewal_age=1.0, candidates=2, takeovers={})
    made.register(LeaseCollector(lambda: lease))
    register_machine(made, lambda: dict.fromkeys(places_of(settings_of()), (1.0, 2.0)))
    sink(DaemonStarted(version="1", python_version="3", workflow="w", agent="kiro", tracker="file"))
    sink(HttpAnswered(route="/livez", status=200))
    sink(WarmPodsCounted(host="east", ready=1, wanted=1))
    sink(NotificationsSent(target="slack", count=1, seconds=0.1))
    sink(NotificationFailed(target="slack", error="late", delay=2.0))
    sink(NotificationsGivenUp(target="slack", count=1, error="refused"))
    return made


def metrics() -> dict[str, tuple[str, set[str]]]:
    """Return type and labels of every metric by its name."""
    found = {}
    for family in registry().collect():
        assert family.samples, family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        suffix = "_total" if family.type == "counter" else ""
        found[family.name + suffix] = (family.type, labels)
    return found


def label_values() -> dict[tuple[str, str], list[str]]:
    """Return what each label of each metric can be, where that is known beforehand."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for family in registry().collect():
        suffix = "_total" if family.type == "counter" else ""
        for sample in family.samples:
            for label, value in sample.labels.items():
                if label not in OPEN and value:
                    found.setdefault((family.name + suffix, label), {})[value] = None
    return {key: list(values) for key, values in found.items()}


def test_every_metric_is_listed() -> None:
    """The tables agree with the registry in names, types and labels, and each row is whole."""
    rows = [row for rows in tables(TEXT) for row in rows if "meaning" in row]
    written = {word(row["metric"]): (row["type"], set(words(row["labels"]))) for row in rows}

    assert written == metrics()
    assert len(rows) == len(written)
    assert all(row["meaning"] for row in rows)


def test_every_value_of_a_label_is_listed() -> None:
    """Who writes a query by the page asks for values that there are, and misses none."""
    rows = [row for row in table(TEXT, "metric") if "values" in row]
    written = {(word(row["metric"]), word(row["label"])): words(row["values"]) for row in rows}

    assert written == label_values()
