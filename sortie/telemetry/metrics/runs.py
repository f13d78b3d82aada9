"""Metrics of runs, and how facts feed them."""

from __future__ import annotations

from functools import singledispatch

from sortie.config.rules import DEFAULT_RULE
from sortie.facts import Fact
from sortie.model import HoldReason, RunStatus, Stage, Trigger
from sortie.model.questions import AnswerWay
from sortie.model.reviews import ReviewVerdict
from sortie.model.tools import ToolName
from sortie.telemetry import facts
from sortie.telemetry.metrics.factory import REQUEST_BUCKETS, RUN_BUCKETS, MetricFactory

_HOOKS = ("after_create", "before_run", "after_run", "before_remove")
_EXITS = tuple(status for status in RunStatus if status is not RunStatus.RUNNING)
_RETRIES = tuple(trigger for trigger in Trigger if trigger is not Trigger.OPERATOR)
"""Reasons for which Sortie itself tries again; an operator's retry is not counted."""


class RunMetrics:
    """Attribute names are metric names without ``sortie_``."""

    def __init__(self, make: MetricFactory) -> None:
        self.dispatches = make.counter(
            "dispatches", "Claims that led to a run.", outcome=("started", "dropped", "error")
        )
        self.worker_exits = make.counter(
            "worker_exits", "Runs that ended.", exit_type=_EXITS, rule=(DEFAULT_RULE,)
        )
        self.worker_duration = make.histogram(
            "worker_duration_seconds", "Time that a run took.", RUN_BUCKETS, exit_type=_EXITS
        )
        self.taken_over = make.counter(
            "runs_taken_over", "Runs of other daemons that went on here with their agents."
        )
        self.retries = make.counter("retries", "Waits to try again.", trigger=_RETRIES)
        self.holds = make.counter("holds", "Issues that were parked.", reason=HoldReason)
        self.dispatch_latency = make.histogram(
            "dispatch_latency_seconds",
            "Time from an issue's fetch to its agent's launch.",
            REQUEST_BUCKETS,
        )
        self.tool_calls = make.counter(
            "tool_calls",
            "Calls of the tools for agents.",
            tool=(*(name.value for name in ToolName), "unknown"),
            result=("ok", "refused", "failed"),
        )
        self.tools_lost = make.counter("tools_lost", "Runs that went on without their tools.")
        self.questions_asked = make.counter(
            "questions_asked", "Questions of agents to the people of an issue."
        )
        self.questions_answered = make.counter(
            "questions_answered", "Questions that were answered, by how.", way=AnswerWay
        )
        self.hook_runs = make.counter(
            "hook_runs", "Hooks that ended.", hook=_HOOKS, result=("ok", "failed", "timeout")
        )
        self.deliveries = make.counter(
            "deliveries",
            "Steps that work took on its way to a pull request.",
            stage=tuple(stage.value for stage in Stage),
        )
        self.verifications = make.counter(
            "verified_commands", "Commands of verify.commands that ended.", result=("ok", "failed")
        )
        self.self_reviews = make.counter(
            "self_reviews",
            "Reviews of work before its pull request, by what they came to.",
            verdict=tuple(verdict.value for verdict in ReviewVerdict),
        )
        self.network_connections = make.counter(
            "network_connections",
            "Connections of runs behind a wall, by whether they were allowed.",
            result=("allowed", "refused"),
        )
        self.rescues = make.counter(
            "rescues", "Workspaces whose unpushed work was kept when they were removed."
        )
        self.hook_duration = make.histogram(
            "hook_duration_seconds", "Time that a hook took.", REQUEST_BUCKETS, hook=_HOOKS
        )

    def know_rule(self, rule: str) -> None:
        """Begin the counters of a rule at 0."""
        for status in _EXITS:
            self.worker_exits.labels(status, rule or DEFAULT_RULE)


@singledispatch
def count(fact: Fact, to: RunMetrics) -> None:
    """Count a fact; a kind without a function below is not counted here."""


@count.register
def _(fact: facts.DispatchDropped, to: RunMetrics) -> None:
    to.dispatches.labels(fact.outcome).inc()


@count.register
def _(fact: facts.RunStarted, to: RunMetrics) -> None:
    to.know_rule(fact.rule)
    to.dispatches.labels("started").inc()


@count.register
def _(fact: facts.RunTakenOver, to: RunMetrics) -> None:
    to.know_rule(fact.rule)
    to.taken_over.inc()


@count.register
def _(fact: facts.RunFinished, to: RunMetrics) -> None:
    to.worker_exits.labels(fact.status, fact.rule or DEFAULT_RULE).inc()
    to.worker_duration.labels(fact.status).observe(fact.seconds)


@count.register
def _(fact: facts.RunRecovered, to: RunMetrics) -> None:
    to.know_rule(fact.rule)
    to.worker_exits.labels(RunStatus.INTERRUPTED, fact.rule or DEFAULT_RULE).inc()
    to.retries.labels(Trigger.INTERRUPTED).inc()


@count.register
def _(fact: facts.RetryScheduled, to: RunMetrics) -> None:
    if fact.trigger in _RETRIES:
        to.retries.labels(fact.trigger).inc()


@count.register
def _(fact: facts.IssueHeld, to: RunMetrics) -> None:
    to.holds.labels(fact.reason).inc()


@count.register
def _(_fact: facts.QuestionAsked, to: RunMetrics) -> None:
    to.questions_asked.inc()


@count.register
def _(fact: facts.QuestionAnswered, to: RunMetrics) -> None:
    to.questions_answered.labels(fact.way).inc()


@count.register
def _(fact: facts.ToolCalled, to: RunMetrics) -> None:
    to.tool_calls.labels(fact.tool, fact.result).inc()


@count.register
def _(_: facts.ToolsLost, to: RunMetrics) -> None:
    to.tools_lost.inc()


@count.register
def _(fact: facts.HookCompleted, to: RunMetrics) -> None:
    to.hook_runs.labels(fact.hook, fact.result).inc()
    to.hook_duration.labels(fact.hook).observe(fact.seconds)


@count.register
def _(fact: facts.DeliveryAdvanced, to: RunMetrics) -> None:
    to.deliveries.labels(fact.stage.value).inc()


@count.register
def _(fact: facts.CommandVerified, to: RunMetrics) -> None:
    to.verifications.labels("ok" if fact.ok else "failed").inc()


@count.register
def _(fact: facts.ConnectionEnded, to: RunMetrics) -> None:
    to.network_connections.labels("allowed").inc(fact.connections)


@count.register
def _(fact: facts.ConnectionRefused, to: RunMetrics) -> None:
    to.network_connections.labels("refused").inc(fact.connections)


@count.register
def _(fact: facts.ReviewFinished, to: RunMetrics) -> None:
    to.self_reviews.labels(fact.verdict.value).inc()


@count.register
def _(_fact: facts.WorkRescued, to: RunMetrics) -> None:
    to.rescues.inc()


@count.register
def _(fact: facts.AgentLaunched, to: RunMetrics) -> None:
    if fact.seconds_since_fetch is not None:
        to.dispatch_latency.observe(fact.seconds_since_fetch)
