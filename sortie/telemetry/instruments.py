"""Every counter and histogram that facts feed, with the label values that are known beforehand.

A counter that exists at 0 from the start can be seen to rise by its first increase; one that
appears with it cannot.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sortie.model import ErrorKind, HoldReason, RunStatus, Trigger, TurnOutcome

RUN_BUCKETS = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
"""Seconds that a turn, or a run, takes: half a second to two hours."""

REQUEST_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Seconds that a poll, a hook, or a start takes."""

_RESULTS = ("success", "error")
_OPERATIONS = ("fetch_candidates", "fetch_by_ids", "fetch_by_states", "transition", "comment")
_HOOKS = ("after_create", "before_run", "after_run", "before_remove")
_LIFECYCLES = ("dispatch", "completion", "failure")
_EXITS = tuple(status for status in RunStatus if status is not RunStatus.RUNNING)
_TURN_ENDS = (
    (TurnOutcome.COMPLETED, ""),
    (TurnOutcome.TIMED_OUT, ErrorKind.TURN_TIMEOUT),
    (TurnOutcome.STALLED, ErrorKind.TURN_STALLED),
    (TurnOutcome.CANCELLED, ErrorKind.TURN_CANCELLED),
    (TurnOutcome.FAILED, ErrorKind.AGENT_NOT_FOUND),
    (TurnOutcome.FAILED, ErrorKind.INVALID_WORKSPACE_CWD),
    (TurnOutcome.FAILED, ErrorKind.RESPONSE_ERROR),
    (TurnOutcome.FAILED, ErrorKind.RESPONSE_TIMEOUT),
    (TurnOutcome.FAILED, ErrorKind.TURN_FAILED),
    (TurnOutcome.FAILED, ErrorKind.PORT_EXIT),
)

RETRY_TRIGGERS = frozenset(Trigger) - {Trigger.OPERATOR}
"""What makes Sortie itself try again; a person who asks for it is not counted as a retry."""


class Instruments:
    """The instruments, registered once; attribute names are metric names without ``sortie_``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._agents: set[str] = set()
        self._make_turn_instruments()
        self._make_run_instruments()
        self._make_tracker_instruments()
        self._make_daemon_instruments()

    def know_agent(self, agent: str) -> None:
        """Begin all counters of an agent at 0, the first time it is named."""
        if agent in self._agents:
            return
        self._agents.add(agent)
        for outcome, kind in _TURN_ENDS:
            self.turns.labels(agent, outcome, kind)
        for outcome in TurnOutcome:
            self.turn_duration.labels(agent, outcome)
        self.turn_credits.labels(agent)
        self.turn_output_lines.labels(agent)
        self.turn_startup.labels(agent)

    def _make_turn_instruments(self) -> None:
        self.turns = self._counter("turns", "Turns that ended.", ("agent", "outcome", "error_kind"))
        self.turn_timeouts = self._counter(
            "turn_timeouts", "Limits that ran out during a turn.", ("kind",)
        )
        self.turn_credits = self._counter(
            "turn_credits", "Credits that agents reported to have used.", ("agent",)
        )
        self.turn_output_lines = self._counter(
            "turn_output_lines", "Non-empty lines of output that agents wrote.", ("agent",)
        )
        self.tokens = self._counter("tokens", "Tokens that agents reported.", ("type",))
        self.agent_runtime = self._counter(
            "agent_runtime_seconds", "Seconds that turns took, in total.", ()
        )
        self.turn_duration = self._histogram(
            "turn_duration_seconds", "Time from prompt to outcome.", ("agent", "outcome")
        )
        self.turn_startup = self._histogram(
            "turn_startup_seconds",
            "Time from a process's launch to its first byte.",
            ("agent",),
            REQUEST_BUCKETS,
        )
        _begin(self.turn_timeouts, ("turn", "stall", "read"))
        _begin(self.tokens, ("total",))

    def _make_run_instruments(self) -> None:
        self.dispatches = self._counter("dispatches", "Claims that led to a run.", ("outcome",))
        self.worker_exits = self._counter("worker_exits", "Runs that ended.", ("exit_type",))
        self.worker_duration = self._histogram(
            "worker_duration_seconds", "Time that a run took.", ("exit_type",)
        )
        self.retries = self._counter("retries", "Waits to try again.", ("trigger",))
        self.holds = self._counter("holds", "Issues that were parked.", ("reason",))
        self.dispatch_latency = self._histogram(
            "dispatch_latency_seconds",
            "Time from an issue's fetch to its agent's launch.",
            (),
            REQUEST_BUCKETS,
        )
        self.hook_runs = self._counter("hook_runs", "Hooks that ended.", ("hook", "result"))
        self.hook_duration = self._histogram(
            "hook_duration_seconds", "Time that a hook took.", ("hook",), REQUEST_BUCKETS
        )
        _begin(self.dispatches, ("started", "dropped", "error"))
        _begin(self.worker_exits, _EXITS)
        _begin(self.worker_duration, _EXITS)
        _begin(self.retries, sorted(RETRY_TRIGGERS))
        _begin(self.holds, tuple(HoldReason))
        _begin(self.hook_runs, _HOOKS, ("ok", "failed", "timeout"))
        _begin(self.hook_duration, _HOOKS)

    def _make_tracker_instruments(self) -> None:
        self.poll_cycles = self._counter("poll_cycles", "Polls that ended.", ("result",))
        self.poll_duration = self._histogram(
            "poll_duration_seconds", "Time that a poll took.", (), REQUEST_BUCKETS
        )
        self.tracker_requests = self._counter(
            "tracker_requests", "Requests to the tracker.", ("operation", "result")
        )
        self.reconciliation_actions = self._counter(
            "reconciliation_actions", "Consequences of re-reading an issue.", ("action",)
        )
        self.handoff_transitions = self._counter(
            "handoff_transitions", "Issues moved at the end of a run.", ("result",)
        )
        self.dispatch_transitions = self._counter(
            "dispatch_transitions", "Issues moved at the start of a run.", ("result",)
        )
        self.tracker_comments = self._counter(
            "tracker_comments", "Comments made on issues.", ("lifecycle", "result")
        )
        _begin(self.poll_cycles, ("success", "error", "skipped"))
        _begin(self.tracker_requests, _OPERATIONS, _RESULTS)
        _begin(self.reconciliation_actions, ("keep", "stop", "cleanup"))
        _begin(self.handoff_transitions, _RESULTS)
        _begin(self.dispatch_transitions, _RESULTS)
        _begin(self.tracker_comments, _LIFECYCLES, _RESULTS)

    def _make_daemon_instruments(self) -> None:
        self.workflow_reloads = self._counter(
            "workflow_reloads", "Times that WORKFLOW.md was read again.", ("result",)
        )
        self.orphans_reaped = self._counter(
            "orphans_reaped", "Processes ended that their run had left behind.", ("where",)
        )
        self.http_requests = self._counter(
            "http_requests", "HTTP requests that were answered.", ("route", "status")
        )
        self.build_info = Gauge(
            "sortie_build_info",
            "The version that runs; always 1.",
            ("version", "python_version"),
            registry=self._registry,
        )
        _begin(self.workflow_reloads, _RESULTS)
        _begin(self.orphans_reaped, ("local", "host"))

    def _counter(self, name: str, text: str, labels: Sequence[str]) -> Counter:
        return Counter(f"sortie_{name}", text, labels, registry=self._registry)

    def _histogram(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        buckets: Sequence[float] = RUN_BUCKETS,
    ) -> Histogram:
        return Histogram(f"sortie_{name}", text, labels, registry=self._registry, buckets=buckets)


def _begin(metric: Counter | Histogram, *values: Sequence[str]) -> None:
    for labels in itertools.product(*values):
        metric.labels(*labels)
