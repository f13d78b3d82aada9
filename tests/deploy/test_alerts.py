"""The alert rules: loaded by Prometheus, each fires when it should and not before."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.prometheus import ALERTS, DEPLOY, promtool, with_prometheus
from tests.docs.pages import code_blocks, page, section
from tests.docs.test_metrics import label_values, metrics

WHO = 'job="sortie",instance="a:1"'
FOREVER = 1500
"""Minutes for which the series of a case go on: more than a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Series of something that is wrong from the start, with one value a minute; the alert is
    quiet at ``quiet`` minutes, and fires at ``fires``."""

    series: dict[str, str]
    quiet: int
    fires: int


def stands(name: str, value: float, **labels: str) -> dict[str, str]:
    """Return a series that stays as it is."""
    more = "".join(f',{label}="{text}"' for label, text in labels.items())
    return {f"{name}{{{WHO}{more}}}": f"{value}x{FOREVER}"}


def grows(name: str, by: float, **labels: str) -> dict[str, str]:
    """Return a counter that grows by so much a minute."""
    more = "".join(f',{label}="{text}"' for label, text in labels.items())
    return {f"{name}{{{WHO}{more}}}": f"0+{by}x{FOREVER}"}


IDLE = (
    stands("up", 1)
    | stands("sortie_ready", 1)
    | stands("sortie_store_writable", 1)
    | stands("sortie_workflow_valid", 1)
    | stands("sortie_process_start_time_seconds", 1000)
    | stands("sortie_process_open_fds", 20)
    | stands("sortie_process_max_fds", 1024)
    | stands("sortie_sessions_running", 0)
    | stands("sortie_issues_queued", 0)
    | stands("sortie_issues_held", 0)
    | stands("sortie_dispatch_paused", 0)
    | stands("sortie_agent_usage_limited", 0)
    | stands("sortie_daily_budget_spent", 0)
    | stands("sortie_ssh_host_up", 1, host="h")
    | stands("sortie_tracker_budget_remaining", 4000, budget="requests")
    | stands("sortie_tracker_budget_limit", 5000, budget="requests")
    | stands("sortie_disk_free_bytes", 5e10, place="database")
    | stands("sortie_disk_size_bytes", 1e11, place="database")
    | grows("sortie_poll_cycles_total", 2, result="success")
    | stands("sortie_poll_cycles_total", 0, result="error")
    | grows("sortie_tracker_requests_total", 4, operation="fetch_candidates", result="success")
    | stands("sortie_tracker_requests_total", 0, operation="fetch_candidates", result="error")
    | stands("sortie_turns_total", 0, agent="kiro", outcome="completed", error_kind="")
    | stands("sortie_retries_total", 0, trigger="error")
    | stands("sortie_worker_exits_total", 0, exit_type="succeeded")
    | stands("sortie_lease_held", 1)
    | stands("sortie_lease_candidates", 2)
    | stands("sortie_lease_failed_renewals_total", 0)
    | stands("sortie_lease_takeovers_total", 9, reason="expired")
    | stands("sortie_lease_takeovers_total", 3, reason="moved")
    | {'sortie_lease_held{job="sortie",instance="b:1"}': f"0x{FOREVER}"}
)
"""A daemon that is well and has nothing to do."""

BUSY = IDLE | (
    stands("sortie_sessions_running", 3)
    | stands("sortie_issues_queued", 5)
    | grows("sortie_turns_total", 0.1, agent="kiro", outcome="completed", error_kind="")
    | grows("sortie_retries_total", 0.1, trigger="error")
    | grows("sortie_worker_exits_total", 0.2, exit_type="succeeded")
)
"""One that has much to do, of which some fails."""

STUCK = BUSY | stands("sortie_turns_total", 7, agent="kiro", outcome="completed", error_kind="")

TROUBLES = {
    "SortieDown": Trouble(series=IDLE | stands("up", 0), quiet=1, fires=3),
    "SortieRestartLoop": Trouble(
        series=IDLE | {f"sortie_process_start_time_seconds{{{WHO}}}": "1000+60x1500"},
        quiet=3,
        fires=6,
    ),
    "SortieCannotRecord": Trouble(
        series=IDLE | stands("sortie_store_writable", 0), quiet=1, fires=3
    ),
    "SortieDoesNotPoll": Trouble(
        series=IDLE | stands("sortie_poll_cycles_total", 9, result="success"), quiet=4, fires=8
    ),
    "SortieNoProgress": Trouble(series=STUCK, quiet=55, fires=65),
    "SortieRetriesRising": Trouble(
        series=BUSY | grows("sortie_retries_total", 0.5, trigger="error"), quiet=5, fires=30
    ),
    "SortieTrackerFailing": Trouble(
        series=IDLE
        | grows("sortie_tracker_requests_total", 1, operation="find", result="success")
        | grows("sortie_tracker_requests_total", 9, operation="find", result="error"),
        quiet=2,
        fires=10,
    ),
    "SortieNotReady": Trouble(series=IDLE | stands("sortie_ready", 0), quiet=14, fires=16),
    "SortieWorkflowInvalid": Trouble(
        series=IDLE | stands("sortie_workflow_valid", 0), quiet=9, fires=11
    ),
    "SortieHostDown": Trouble(
        series=IDLE | stands("sortie_ssh_host_up", 0, host="h"), quiet=14, fires=16
    ),
    "SortieNoLeader": Trouble(series=IDLE | stands("sortie_lease_held", 0), quiet=0, fires=2),
    "SortieLeadersChange": Trouble(
        series=IDLE | grows("sortie_lease_takeovers_total", 0.5, reason="expired"),
        quiet=5,
        fires=30,
    ),
    "SortieLeaseNotRenewed": Trouble(
        series=IDLE | grows("sortie_lease_failed_renewals_total", 1), quiet=4, fires=10
    ),
    "SortieLastDaemon": Trouble(
        series=IDLE | {f"sortie_lease_candidates{{{WHO}}}": f"2x9 1x{FOREVER}"}, quiet=20, fires=30
    ),
    "SortieIssuesHeld": Trouble(series=IDLE | stands("sortie_issues_held", 2), quiet=59, fires=61),
    "SortieDiskFilling": Trouble(
        series=IDLE | stands("sortie_disk_free_bytes", 4e9, place="database"), quiet=9, fires=11
    ),
    "SortieFilesRunningOut": Trouble(
        series=IDLE | stands("sortie_process_open_fds", 1000), quiet=4, fires=6
    ),
    "SortieTrackerBudgetLow": Trouble(
        series=IDLE | stands("sortie_tracker_budget_remaining", 200, budget="requests"),
        quiet=9,
        fires=11,
    ),
    "SortieBudgetSpent": Trouble(
        series=IDLE | stands("sortie_daily_budget_spent", 1), quiet=4, fires=6
    ),
    "SortieUsageLimited": Trouble(
        series=IDLE | stands("sortie_agent_usage_limited", 1), quiet=59, fires=61
    ),
    "SortieNotificationsStuck": Trouble(
        series=IDLE
        | stands("sortie_notifications_oldest_age_seconds", 7200, target="slack")
        | grows("sortie_notification_failures_total", 0.2, target="slack"),
        quiet=4,
        fires=10,
    ),
    "SortieWebhooksRejected": Trouble(
        series=IDLE
        | grows("sortie_webhooks_rejected_total", 1, kind="github", reason="signature")
        | grows("sortie_webhooks_received_total", 0.5, kind="github"),
        quiet=5,
        fires=60,
    ),
    "SortieWebhooksMissed": Trouble(
        series=IDLE | grows("sortie_webhooks_missed_total", 0.1, kind="github", subject="issues"),
        quiet=1,
        fires=30,
    ),
    "SortieTracesLost": Trouble(
        series=IDLE
        | grows("sortie_trace_spans_total", 5, result="exported")
        | grows("sortie_trace_spans_total", 1, result="failed"),
        quiet=29,
        fires=40,
    ),
    "SortieForgottenPause": Trouble(
        series=IDLE | stands("sortie_dispatch_paused", 1), quiet=1439, fires=1441
    ),
}
QUIET = {
    "nothing to do": IDLE,
    "much to do": BUSY,
    "webhooks that strangers try as well": IDLE
    | grows("sortie_webhooks_rejected_total", 1, kind="github", reason="signature")
    | grows("sortie_webhooks_rejected_total", 9, kind="github", reason="replayed")
    | grows("sortie_webhooks_rejected_total", 9, kind="other", reason="unknown_kind")
    | grows("sortie_webhooks_received_total", 2, kind="github"),
    "one daemon from the first": IDLE | stands("sortie_lease_candidates", 1),
    "stuck for a reason": STUCK | stands("sortie_daily_budget_spent", 1),
}
MEANT = {"stuck for a reason": {"SortieBudgetSpent"}}
"""What fires all the same."""


def case(name: str, series: dict[str, str], expected: dict[int, dict[str, int]]) -> object:
    """Return a test for promtool: how many of which alerts fire after so many minutes."""
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": key, "values": text} for key, text in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": "{}", "value": count}] if count else [],
            }
            for minute, alerts in expected.items()
            for alert, count in alerts.items()
        ],
    }


def cases() -> list[object]:
    every = [str(rule["alert"]) for rule in ALERTS]
    found = [
        case(name, trouble.series, {trouble.quiet: {name: 0}, trouble.fires: {name: 1}})
        for name, trouble in TROUBLES.items()
    ]
    for name, series in QUIET.items():
        expected = {alert: int(alert in MEANT.get(name, ())) for alert in every}
        found.append(case(name, series, {180: expected}))
    found.append(case("no target at all", {}, {5: {"SortieDown": 1}}))
    return found


@with_prometheus
def test_prometheus_takes_rules_and_configuration() -> None:
    """promtool finds no fault in what is shipped."""
    assert "SUCCESS" in promtool("check", "rules", "alerts.yml", cwd=DEPLOY)
    assert "SUCCESS" in promtool("check", "config", "prometheus.yml", cwd=DEPLOY)


@with_prometheus
def test_alerts_fire_when_they_should_and_not_before(tmp_path: Path) -> None:
    """Each has its trouble; a daemon that is well, idle or busy, sets off none."""
    tests = {"rule_files": [str(DEPLOY / "alerts.yml")], "evaluation_interval": "1m"}
    (tmp_path / "tests.yml").write_text(json.dumps(tests | {"tests": cases()}))

    assert "SUCCESS" in promtool("test", "rules", "tests.yml", cwd=tmp_path)


@with_prometheus
def test_an_alert_says_where_and_what_to_do(tmp_path: Path) -> None:
    """Its texts are filled in."""
    trouble = TROUBLES["SortieDiskFilling"]
    labels = {"severity": "warning", "job": "sortie", "instance": "a:1", "place": "database"}
    expected = {
        "exp_labels": labels,
        "exp_annotations": {
            "summary": "the disk of the database of a:1 is nearly full",
            "description": "When it is full, nothing can be recorded and nothing is started.",
            "runbook_url": "docs/runbook.md#sortiediskfilling",
        },
    }
    test = {
        "interval": "1m",
        "input_series": [{"series": key, "values": text} for key, text in trouble.series.items()],
        "alert_rule_test": [
            {"eval_time": "20m", "alertname": "SortieDiskFilling", "exp_alerts": [expected]}
        ],
    }
    whole = {"rule_files": [str(DEPLOY / "alerts.yml")], "tests": [test]}
    (tmp_path / "tests.yml").write_text(json.dumps(whole))

    assert "SUCCESS" in promtool("test", "rules", "tests.yml", cwd=tmp_path)


def test_every_alert_has_its_trouble() -> None:
    """No rule is shipped that nobody saw fire."""
    assert TROUBLES.keys() == {rule["alert"] for rule in ALERTS}


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_every_alert_has_a_page_to_go_by(rule: dict[str, dict[str, str]]) -> None:
    """Its link leads to its section of the runbook, which says what to look at and to do."""
    name = str(rule["alert"])
    text = section(page("runbook.md"), name)

    assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{name.lower()}"
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"]
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert "```sh" in text
    assert "\n- " in text
    assert code_blocks(text)


def test_alerts_ask_for_metrics_and_labels_that_there_are() -> None:
    """No rule is silent for ever because a name in it is wrong."""
    known, values = metrics(), label_values()

    for rule in ALERTS:
        assert set(re.findall(r"sortie_\w+", rule["expr"])) <= known.keys()
        for name, inner in re.findall(r"(sortie_\w+)\{([^}]*)\}", rule["expr"]):
            for label, text in re.findall(r'(\w+)=~?"([^"]*)"', inner):
                assert label in known[name][1]
                assert set(text.split("|")) <= set(values[name, label])
