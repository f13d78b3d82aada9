"""Metrics of the daemon and of its polls and requests to the tracker, and how facts feed them."""

from __future__ import annotations

from functools import singledispatch

from sortie.facts import Fact
from sortie.telemetry import facts
from sortie.telemetry.metrics.factory import REQUEST_BUCKETS, MetricFactory, rise

_RESULTS = ("success", "error")
_TRACKER_OPERATIONS = (
    "fetch_candidates",
    "fetch_by_ids",
    "find",
    "transition",
    "complete_move",
    "comment",
)
_LIFECYCLES = ("dispatch", "completion", "failure", "agent", "question")


class DaemonMetrics:
    """Attribute names are metric names without ``sortie_``."""

    def __init__(self, make: MetricFactory) -> None:
        self._define_tracker_metrics(make)
        self.workflow_reloads = make.counter(
            "workflow_reloads", "Times that WORKFLOW.md was read again.", result=_RESULTS
        )
        self.orphans_reaped = make.counter(
            "orphans_reaped",
            "Processes ended that their run had left behind.",
            where=("local", "host"),
        )
        self.pod_start = make.histogram(
            "pod_start_seconds",
            "Time from asking for an issue's pod until it runs.",
            REQUEST_BUCKETS,
            origin=("warm", "cold"),
        )
        self.warm_pods = make.gauge("warm_pods", "Pods that wait for an issue.", host=())
        self.event_log_missing_events = make.counter(
            "event_log_missing_events", "Events that are missing in the event log."
        )
        self.trace_spans = make.counter(
            "trace_spans",
            "Spans of runs, by what became of them.",
            result=("exported", "dropped", "failed"),
        )
        self.http_requests = make.counter(
            "http_requests", "HTTP requests that were answered.", route=(), status=()
        )
        self.build_info = make.gauge(
            "build_info", "The version that runs; always 1.", version=(), python_version=()
        )

    def _define_tracker_metrics(self, make: MetricFactory) -> None:
        self.poll_cycles = make.counter(
            "poll_cycles", "Polls that ended.", result=("success", "error", "skipped")
        )
        self.poll_duration = make.histogram(
            "poll_duration_seconds", "Time that a poll took.", REQUEST_BUCKETS
        )
        self.tracker_requests = make.counter(
            "tracker_requests",
            "Requests to the tracker.",
            operation=_TRACKER_OPERATIONS,
            result=_RESULTS,
        )
        self.reconciliation_actions = make.counter(
            "reconciliation_actions",
            "Consequences of re-reading an issue.",
            action=("keep", "stop", "cleanup"),
        )
        self.handoff_transitions = make.counter(
            "handoff_transitions", "Issues moved at the end of a run.", result=_RESULTS
        )
        self.dispatch_transitions = make.counter(
            "dispatch_transitions", "Issues moved at the start of a run.", result=_RESULTS
        )
        self.tracker_comments = make.counter(
            "tracker_comments",
            "Comments made on issues.",
            lifecycle=_LIFECYCLES,
            result=_RESULTS,
        )


@singledispatch
def count(fact: Fact, to: DaemonMetrics) -> None:
    """Count a fact; a kind without a function below is not counted here."""


@count.register
def _(fact: facts.DaemonStarted, to: DaemonMetrics) -> None:
    to.build_info.labels(fact.version, fact.python_version).set(1)


@count.register
def _(fact: facts.WorkflowReloaded, to: DaemonMetrics) -> None:
    to.workflow_reloads.labels("error" if fact.errors else "success").inc()


@count.register
def _(fact: facts.OrphansReaped, to: DaemonMetrics) -> None:
    to.orphans_reaped.labels(fact.where).inc(rise(fact.count))


@count.register
def _(fact: facts.PodReady, to: DaemonMetrics) -> None:
    to.pod_start.labels(fact.origin).observe(fact.seconds)


@count.register
def _(fact: facts.WarmPodsCounted, to: DaemonMetrics) -> None:
    to.warm_pods.labels(fact.host).set(fact.ready)


@count.register
def _(fact: facts.EventLogGap, to: DaemonMetrics) -> None:
    to.event_log_missing_events.inc(fact.events)


@count.register
def _(fact: facts.SpansExported, to: DaemonMetrics) -> None:
    to.trace_spans.labels("exported").inc(fact.exported)
    to.trace_spans.labels("dropped").inc(fact.dropped)
    to.trace_spans.labels("failed").inc(fact.failed)


@count.register
def _(fact: facts.HttpAnswered, to: DaemonMetrics) -> None:
    to.http_requests.labels(fact.route, str(fact.status)).inc()


@count.register
def _(fact: facts.PollCompleted, to: DaemonMetrics) -> None:
    to.poll_cycles.labels(fact.result).inc()
    if fact.result != "skipped":
        to.poll_duration.observe(fact.seconds)


@count.register
def _(fact: facts.TrackerAsked, to: DaemonMetrics) -> None:
    to.tracker_requests.labels(fact.operation, fact.result).inc()


@count.register
def _(fact: facts.IssueReconciled, to: DaemonMetrics) -> None:
    to.reconciliation_actions.labels(fact.action).inc()


@count.register
def _(fact: facts.TransitionCompleted, to: DaemonMetrics) -> None:
    handoff = fact.lifecycle == "handoff"
    transitions = to.handoff_transitions if handoff else to.dispatch_transitions
    transitions.labels(fact.result).inc()


@count.register
def _(fact: facts.CommentCompleted, to: DaemonMetrics) -> None:
    to.tracker_comments.labels(fact.lifecycle, fact.result).inc()
