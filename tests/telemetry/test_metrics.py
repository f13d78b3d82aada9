"""Metrics: each fact counts once where the contract says, under the contract's names."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as parse_plain

from sortie.facts import (
    AgentSpoke,
    ConnectionRefused,
    DispatchDropped,
    ErrandFailed,
    EventLogGap,
    Fact,
    HookCompleted,
    HttpAnswered,
    MergeAttempted,
    NotificationFailed,
    NotificationsGivenUp,
    NotificationsSent,
    OrphansReaped,
    PodReady,
    PollCompleted,
    ReactionEnded,
    ReactionPlanned,
    RunRecovered,
    SessionRefused,
    SpansExported,
    TransitionCompleted,
    WarmPodsCounted,
    WatchEnded,
    WebhookFollowed,
    WebhookLost,
    WebhookReceived,
    WebhookRejected,
    WebhooksMissed,
    WorkflowReloaded,
)
from sortie.model import ErrorKind, RunStatus
from sortie.model.watches import IssueMove, word_for
from sortie.telemetry.metrics import MetricsSink, expose
from sortie.telemetry.metrics.gauges import GaugeCollector, Gauges
from tests.telemetry.samples import (
    FACTS,
    ISSUE,
    PULL_REQUEST,
    RUN,
    RUN_FINISHED,
    RUN_STARTED,
    RUN_TAKEN_OVER,
    TURN_FAILED,
)

Sample = tuple[str, tuple[tuple[str, str], ...]]

COUNTERS = {
    "sortie_turns_total": ["agent", "error_kind", "outcome"],
    "sortie_turn_timeouts_total": ["kind"],
    "sortie_turn_credits_total": ["agent"],
    "sortie_turn_cost_usd_total": ["agent"],
    "sortie_turn_output_lines_total": ["agent"],
    "sortie_tokens_total": ["type"],
    "sortie_agent_runtime_seconds_total": [],
    "sortie_dispatches_total": ["outcome"],
    "sortie_runs_taken_over_total": [],
    "sortie_worker_exits_total": ["exit_type", "rule"],
    "sortie_retries_total": ["trigger"],
    "sortie_reconciliation_actions_total": ["action"],
    "sortie_poll_cycles_total": ["result"],
    "sortie_tracker_requests_total": ["operation", "result"],
    "sortie_handoff_transitions_total": ["result"],
    "sortie_dispatch_transitions_total": ["result"],
    "sortie_tool_calls_total": ["result", "tool"],
    "sortie_tools_lost_total": [],
    "sortie_tracker_comments_total": ["lifecycle", "result"],
    "sortie_deliveries_total": ["stage"],
    "sortie_verified_commands_total": ["result"],
    "sortie_self_reviews_total": ["verdict"],
    "sortie_network_connections_total": ["result"],
    "sortie_reactions_total": ["kind", "result"],
    "sortie_merges_total": ["result"],
    "sortie_watches_ended_total": ["result"],
    "sortie_errands_failed_total": ["errand"],
    "sortie_notifications_sent_total": ["target"],
    "sortie_notifications_repeated_total": ["target"],
    "sortie_notification_failures_total": ["target"],
    "sortie_notifications_given_up_total": ["target"],
    "sortie_webhooks_received_total": ["kind"],
    "sortie_webhooks_rejected_total": ["kind", "reason"],
    "sortie_webhooks_missed_total": ["kind", "subject"],
    "sortie_webhooks_lost_total": ["kind"],
    "sortie_rescues_total": [],
    "sortie_hook_runs_total": ["hook", "result"],
    "sortie_holds_total": ["reason"],
    "sortie_questions_asked_total": [],
    "sortie_questions_answered_total": ["way"],
    "sortie_workflow_reloads_total": ["result"],
    "sortie_orphans_reaped_total": ["where"],
    "sortie_event_log_missing_events_total": [],
    "sortie_trace_spans_total": ["result"],
    "sortie_http_requests_total": ["route", "status"],
}
HISTOGRAMS = {
    "sortie_turn_duration_seconds": ["agent", "outcome"],
    "sortie_turn_startup_seconds": ["agent"],
    "sortie_model_answer_seconds": ["agent"],
    "sortie_worker_duration_seconds": ["exit_type"],
    "sortie_poll_duration_seconds": [],
    "sortie_dispatch_latency_seconds": [],
    "sortie_hook_duration_seconds": ["hook"],
    "sortie_pod_start_seconds": ["origin"],
    "sortie_webhook_lag_seconds": ["subject"],
}
GAUGES = {
    "sortie_sessions_running": [],
    "sortie_sessions_retrying": [],
    "sortie_issues_held": [],
    "sortie_workspaces_kept": [],
    "sortie_watched_pull_requests": [],
    "sortie_issues_queued": [],
    "sortie_issues_blocked": [],
    "sortie_slots_available": [],
    "sortie_active_sessions_elapsed_seconds": [],
    "sortie_dispatch_paused": [],
    "sortie_workflow_valid": [],
    "sortie_store_writable": [],
    "sortie_ready": [],
    "sortie_agent_usage_limited": [],
    "sortie_daily_budget_spent": [],
    "sortie_spent_today": ["unit"],
    "sortie_usage_limits_total": ["agent"],
    "sortie_ssh_host_usage": ["host"],
    "sortie_rule_slots_used": ["rule"],
    "sortie_rule_slots_guaranteed": ["rule"],
    "sortie_rule_slots_limit": ["rule"],
    "sortie_notifications_waiting": ["target"],
    "sortie_notifications_dead": ["target"],
    "sortie_notifications_oldest_age_seconds": ["target"],
    "sortie_ssh_host_up": ["host"],
    "sortie_tracker_budget_remaining": ["budget"],
    "sortie_tracker_budget_limit": ["budget"],
    "sortie_warm_pods": ["host"],
    "sortie_build_info": ["python_version", "version"],
}
BUSY = Gauges(
    sessions_running=2,
    sessions_retrying=3,
    issues_held=1,
    workspaces_kept=3,
    watched_pull_requests=12,
    slots_available=8,
    issues_queued=7,
    issues_blocked=4,
    active_sessions_elapsed_seconds=12.5,
    dispatch_paused=True,
    workflow_valid=False,
    store_writable=False,
    ready=False,
    spent_today={"credits": 2.5},
    ssh_host_usage={"builder:2222": 2},
    ssh_host_up={"builder:2222": True},
    tracker_budgets={"requests": (12, 5000)},
    rule_slots={"docs": (1, 0, 3), "default": (1, None, None)},
    notifications={"slack": (3, 1, 60.0)},
)


def samples(registry: CollectorRegistry) -> dict[Sample, float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def risen(*facts: Fact) -> dict[str, float]:
    """Return every sample that these facts changed, buckets aside, written as in the page."""
    registry = CollectorRegistry()
    sink = MetricsSink(registry)
    for fact in facts:
        sink(fact)
    return {
        f"{name}{{{','.join(f'{key}={text}' for key, text in labels)}}}": value
        for (name, labels), value in samples(registry).items()
        if value and not name.endswith("_bucket")
    }


def test_the_names_and_labels_are_those_of_the_contract() -> None:
    """After one fact of every kind the page holds these metrics and no others."""
    registry = CollectorRegistry()
    sink = MetricsSink(registry)
    registry.register(GaugeCollector(lambda: BUSY))
    for fact in FACTS:
        sink(fact)

    found = {
        name: sorted(key for key, _ in labels)
        for name, labels in samples(registry)
        if not name.endswith(("_bucket", "_sum"))
    }

    histograms = {f"{name}_count": labels for name, labels in HISTOGRAMS.items()}
    assert found == COUNTERS | histograms | GAUGES


def test_no_label_names_an_issue() -> None:
    """Neither an issue's identifier nor a run's id is in the page."""
    registry = CollectorRegistry()
    sink = MetricsSink(registry)
    for fact in FACTS:
        sink(fact)

    page = expose(registry, "").body.decode()

    assert "DEMO-1" not in page
    assert RUN not in page


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (
            SessionRefused(
                run_id=RUN, error_kind=ErrorKind.RESPONSE_ERROR, error="late", timed_out=True
            ),
            {"sortie_turn_timeouts_total{kind=read}": 1},
        ),
        (
            AgentSpoke(run_id=RUN, agent="kiro", lines=4, message="m"),
            {"sortie_turn_output_lines_total{agent=kiro}": 4},
        ),
        (RUN_STARTED, {"sortie_dispatches_total{outcome=started}": 1}),
        (RUN_TAKEN_OVER, {"sortie_runs_taken_over_total{}": 1}),
        (
            DispatchDropped(issue=ISSUE, outcome="error", reason="r"),
            {"sortie_dispatches_total{outcome=error}": 1},
        ),
        (
            replace(RUN_FINISHED, status=RunStatus.STALLED),
            {
                "sortie_worker_exits_total{exit_type=stalled,rule=default}": 1,
                "sortie_worker_duration_seconds_count{exit_type=stalled}": 1,
                "sortie_worker_duration_seconds_sum{exit_type=stalled}": 5.5,
            },
        ),
        (
            replace(RUN_FINISHED, seconds=0.0, rule="docs"),
            {
                "sortie_worker_exits_total{exit_type=succeeded,rule=docs}": 1,
                "sortie_worker_duration_seconds_count{exit_type=succeeded}": 1,
            },
        ),
        (
            RunRecovered(run_id=RUN, issue=ISSUE, rule="docs"),
            {
                "sortie_worker_exits_total{exit_type=interrupted,rule=docs}": 1,
                "sortie_retries_total{trigger=interrupted}": 1,
            },
        ),
        (
            HookCompleted(
                hook="after_run", result="timeout", seconds=2.0, issue_identifier="DEMO-1"
            ),
            {
                "sortie_hook_runs_total{hook=after_run,result=timeout}": 1,
                "sortie_hook_duration_seconds_count{hook=after_run}": 1,
                "sortie_hook_duration_seconds_sum{hook=after_run}": 2.0,
            },
        ),
        (
            ReactionPlanned(
                issue=ISSUE, pull_request=PULL_REQUEST, kinds=("checks", "review"), head="0123abc"
            ),
            {
                "sortie_reactions_total{kind=checks,result=planned}": 1,
                "sortie_reactions_total{kind=review,result=planned}": 1,
            },
        ),
        (
            ReactionEnded(
                issue=ISSUE, pull_request=PULL_REQUEST, kinds=("conflicts",), result="exhausted"
            ),
            {"sortie_reactions_total{kind=conflicts,result=exhausted}": 1},
        ),
        (
            MergeAttempted(issue=ISSUE, pull_request=PULL_REQUEST, result="merged", error=None),
            {"sortie_merges_total{result=merged}": 1},
        ),
        (
            WatchEnded(issue=ISSUE, pull_request=PULL_REQUEST, result="expired", reason="r"),
            {"sortie_watches_ended_total{result=expired}": 1},
        ),
        (
            ErrandFailed(
                issue=ISSUE,
                pull_request=PULL_REQUEST,
                errand=word_for(IssueMove(state="Done")),
                error="e",
            ),
            {"sortie_errands_failed_total{errand=move_issue}": 1},
        ),
        (WebhookReceived(kind="jira"), {"sortie_webhooks_received_total{kind=jira}": 1}),
        (
            WebhookRejected(kind="other", reason="unknown_kind", count=7),
            {"sortie_webhooks_rejected_total{kind=other,reason=unknown_kind}": 1},
        ),
        (
            WebhooksMissed(kind="github", subject="issues", changes=3, seconds=3600.0),
            {"sortie_webhooks_missed_total{kind=github,subject=issues}": 3},
        ),
        (
            WebhookLost(kind="gitea", error="e"),
            {"sortie_webhooks_lost_total{kind=gitea}": 1},
        ),
        (
            WebhookFollowed(kind="gitea", subject="pull_requests", seconds=2.0),
            {
                "sortie_webhook_lag_seconds_count{subject=pull_requests}": 1,
                "sortie_webhook_lag_seconds_sum{subject=pull_requests}": 2.0,
            },
        ),
        (
            NotificationsSent(target="slack", count=3, repeated=1, seconds=0.1),
            {
                "sortie_notifications_sent_total{target=slack}": 3,
                "sortie_notifications_repeated_total{target=slack}": 1,
            },
        ),
        (
            NotificationFailed(target="slack", error="late", delay=2.0),
            {"sortie_notification_failures_total{target=slack}": 1},
        ),
        (
            NotificationsGivenUp(target="slack", count=2, error="refused"),
            {"sortie_notifications_given_up_total{target=slack}": 2},
        ),
        (
            PollCompleted(result="skipped", seconds=0.0),
            {"sortie_poll_cycles_total{result=skipped}": 1},
        ),
        (
            PollCompleted(result="error", seconds=2.0, error="e"),
            {
                "sortie_poll_cycles_total{result=error}": 1,
                "sortie_poll_duration_seconds_count{}": 1,
                "sortie_poll_duration_seconds_sum{}": 2.0,
            },
        ),
        (
            TransitionCompleted(issue=ISSUE, lifecycle="handoff", state="S", result="error"),
            {"sortie_handoff_transitions_total{result=error}": 1},
        ),
        (
            TransitionCompleted(issue=ISSUE, lifecycle="dispatch", state="S", result="success"),
            {"sortie_dispatch_transitions_total{result=success}": 1},
        ),
        (WorkflowReloaded(), {"sortie_workflow_reloads_total{result=success}": 1}),
        (WorkflowReloaded(errors=("e",)), {"sortie_workflow_reloads_total{result=error}": 1}),
        (
            OrphansReaped(where="host", count=3),
            {"sortie_orphans_reaped_total{where=host}": 3},
        ),
        (
            PodReady(host="east", pod="p", origin="warm", seconds=0.2),
            {
                "sortie_pod_start_seconds_count{origin=warm}": 1,
                "sortie_pod_start_seconds_sum{origin=warm}": 0.2,
            },
        ),
        (
            WarmPodsCounted(host="east", ready=2, wanted=3),
            {"sortie_warm_pods{host=east}": 2},
        ),
        (
            EventLogGap(events=40),
            {"sortie_event_log_missing_events_total{}": 40},
        ),
        (
            ConnectionRefused(run_id=RUN, host="h", port=443, reason="not listed", connections=4),
            {"sortie_network_connections_total{result=refused}": 4},
        ),
        (
            SpansExported(exported=7, dropped=2, failed=1, error="it answers 503"),
            {
                "sortie_trace_spans_total{result=exported}": 7,
                "sortie_trace_spans_total{result=dropped}": 2,
                "sortie_trace_spans_total{result=failed}": 1,
            },
        ),
        (
            HttpAnswered(route="/api/v1/state", status=403),
            {"sortie_http_requests_total{route=/api/v1/state,status=403}": 1},
        ),
    ],
)
def test_what_a_fact_counts(fact: Fact, expected: dict[str, float]) -> None:
    """A fact changes these samples and no others."""
    assert risen(fact) == expected


def test_counters_with_known_labels_are_there_from_the_start() -> None:
    """The first increase of a counter can be seen as one, since it stood at 0 before."""
    registry = CollectorRegistry()
    sink = MetricsSink(registry)
    sink(FACTS[0])
    before = samples(registry)
    for fact in FACTS:
        sink(fact)

    appeared = {name for name, _ in samples(registry).keys() - before.keys()}

    assert {name for name in appeared if "_notification" not in name} == {
        "sortie_http_requests_total",
        "sortie_warm_pods",
    }


def test_gauges_are_read_when_they_are_asked_for() -> None:
    """A gauge shows the moment of the scrape, and registering it reads nothing."""
    readings: list[Gauges] = []
    registry = CollectorRegistry()
    registry.register(GaugeCollector(lambda: readings[-1]))

    readings.append(BUSY)
    first = samples(registry)
    readings.append(replace(BUSY, sessions_running=0, ssh_host_usage={}))
    second = samples(registry)

    assert first == {
        ("sortie_sessions_running", ()): 2,
        ("sortie_sessions_retrying", ()): 3,
        ("sortie_issues_held", ()): 1,
        ("sortie_workspaces_kept", ()): 3,
        ("sortie_watched_pull_requests", ()): 12,
        ("sortie_issues_queued", ()): 7,
        ("sortie_issues_blocked", ()): 4,
        ("sortie_slots_available", ()): 8,
        ("sortie_active_sessions_elapsed_seconds", ()): 12.5,
        ("sortie_dispatch_paused", ()): 1,
        ("sortie_workflow_valid", ()): 0,
        ("sortie_store_writable", ()): 0,
        ("sortie_ready", ()): 0,
        ("sortie_agent_usage_limited", ()): 0,
        ("sortie_daily_budget_spent", ()): 0,
        ("sortie_spent_today", (("unit", "credits"),)): 2.5,
        ("sortie_ssh_host_usage", (("host", "builder:2222"),)): 2,
        ("sortie_rule_slots_used", (("rule", "docs"),)): 1,
        ("sortie_rule_slots_used", (("rule", "default"),)): 1,
        ("sortie_rule_slots_guaranteed", (("rule", "docs"),)): 0,
        ("sortie_rule_slots_limit", (("rule", "docs"),)): 3,
        ("sortie_notifications_waiting", (("target", "slack"),)): 3,
        ("sortie_notifications_dead", (("target", "slack"),)): 1,
        ("sortie_notifications_oldest_age_seconds", (("target", "slack"),)): 60,
        ("sortie_ssh_host_up", (("host", "builder:2222"),)): 1,
        ("sortie_tracker_budget_remaining", (("budget", "requests"),)): 12,
        ("sortie_tracker_budget_limit", (("budget", "requests"),)): 5000,
    }
    assert second[("sortie_sessions_running", ())] == 0
    assert ("sortie_ssh_host_usage", (("host", "builder:2222"),)) not in second


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "text/plain;version=x",
        "application/openmetrics-text; version=abc",
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1",
    ],
)
def test_the_page_can_be_parsed_as_what_it_says_it_is(accept: str) -> None:
    """Whatever a client accepts, it gets a page in the format that its type names."""
    registry = CollectorRegistry()
    MetricsSink(registry)(TURN_FAILED)

    page = expose(registry, accept)

    openmetrics = page.content_type.startswith("application/openmetrics-text")
    assert openmetrics is ("version=1.0.0" in accept)
    parse = text_string_to_metric_families if openmetrics else parse_plain
    names = {family.name for family in parse(page.body.decode())}
    assert "sortie_turns" in {name.removesuffix("_total") for name in names}
    assert not any(name.endswith("_created") for name in names)
