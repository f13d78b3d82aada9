"""The dashboard: what Grafana needs of one, and queries that name what there is."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations
from typing import Any

from tests.deploy.prometheus import dashboard
from tests.docs.test_metrics import label_values, metrics

BOARD = dashboard()
PANELS: list[dict[str, Any]] = BOARD["panels"]
GRAPHS = [panel for panel in PANELS if panel["type"] != "row"]
PARTS = ("_bucket", "_count", "_sum")
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def expressions() -> list[str]:
    """Return every query of every panel."""
    return [target["expr"] for panel in GRAPHS for target in panel["targets"]]


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    """Tell whether two places share some of the grid."""
    return (
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )


def test_grafana_can_import_it() -> None:
    """It has a title, an id of its own, a schema, unique panels, and asks for its Prometheus."""
    variables = {variable["name"]: variable for variable in BOARD["templating"]["list"]}

    assert BOARD["title"] == "Sortie"
    assert BOARD["uid"] == "sortie"
    assert "id" not in BOARD  # it would be another dashboard's in somebody's Grafana
    assert isinstance(BOARD["schemaVersion"], int)
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    assert variables["instance"]["datasource"] == SOURCE
    assert set(Counter(panel["id"] for panel in PANELS).values()) == {1}


def test_every_panel_is_whole() -> None:
    """Each says what it shows, asks the chosen Prometheus, and each query has a letter."""
    for panel in GRAPHS:
        assert panel["title"]
        assert panel["description"]
        assert panel["datasource"] == SOURCE
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters))
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {SOURCE["uid"]}
    assert set(Counter(panel["title"] for panel in PANELS).values()) == {1}


def test_panels_lie_beside_each_other() -> None:
    """No panel covers another or leaves the 24 columns."""
    places = [panel["gridPos"] for panel in PANELS]

    assert not [pair for pair in combinations(places, 2) if overlap(*pair)]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)


def test_queries_name_metrics_and_labels_that_there_are() -> None:
    """No panel is empty for ever because a name in it is wrong."""
    known, values = metrics(), label_values()

    def base(name: str) -> str:
        for part in PARTS:
            if name.removesuffix(part) in known:
                return name.removesuffix(part)
        return name

    for expression in expressions():
        assert 'instance=~"$instance"' in expression
        for name, inner in re.findall(r"(sortie_\w+)\{([^}]*)\}", expression):
            kind, labels = known[base(name)]
            assert (kind == "histogram") == (name != base(name)), name
            for label, text in re.findall(r'(\w+)(?:=~|!=|=)"([^"]*)"', inner):
                if label != "instance":
                    assert label in labels, (name, label)
                    assert not text or text in values[base(name), label]
        for grouping in re.findall(r"by \(([^)]*)\)", expression):
            used = {
                label
                for name in re.findall(r"sortie_\w+", expression)
                for label in known[base(name)][1]
            }
            assert set(grouping.split(", ")) - {"le"} <= used, expression


def test_nearly_every_metric_has_a_panel() -> None:
    """Those without one are named here, with the reason."""
    shown = {
        name.removesuffix("_bucket")
        for expression in expressions()
        for name in re.findall(r"sortie_\w+", expression)
    }
    elsewhere = {
        "sortie_active_sessions_elapsed_seconds",  # the length of turns and runs says more
        "sortie_agent_runtime_seconds_total",  # the same
        "sortie_worker_duration_seconds",  # the same
        "sortie_model_answer_seconds",  # few agents tell it
        "sortie_usage_limits_total",  # the state of dispatch shows it
        "sortie_tracker_budget_limit",  # what is left is shown
        "sortie_reconciliation_actions_total",  # all of them are in order
        "sortie_store_writable",  # one of the reasons not to be ready
        "sortie_workflow_reloads_total",  # whether the file is valid is shown
        "sortie_orphans_reaped_total",  # after crashes, which are shown
        "sortie_disk_size_bytes",  # what is free is shown
        "sortie_process_virtual_memory_bytes",  # says little
        "sortie_pod_start_seconds",  # few have pods
        "sortie_warm_pods",  # the same
        "sortie_event_log_missing_events_total",  # a line of the log says what is missing
        "sortie_notification_failures_total",  # the age of the oldest one shows it
        "sortie_notifications_given_up_total",  # what is kept of them is shown
        "sortie_trace_spans_total",  # few have traces, and a line of the log says what is lost
    }

    assert shown == metrics().keys() - elsewhere
