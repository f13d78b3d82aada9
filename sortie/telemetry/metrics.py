"""The sink that counts facts for Prometheus, and the exposition of all metrics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import assert_never

import prometheus_client
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from sortie.model import RunStatus, Trigger
from sortie.telemetry.facts import (
    AdapterCrashed,
    AgentAnswered,
    AgentLaunched,
    AgentSimulated,
    AgentSpoke,
    CommentCompleted,
    ControlUnavailable,
    DaemonCrashed,
    DaemonStarted,
    DaemonStopped,
    DaemonStopping,
    DaemonWasPaused,
    DispatchDropped,
    Fact,
    HoldEnded,
    HoldRestored,
    HookCompleted,
    HostBack,
    HostGivenUp,
    HostNoticed,
    HostRested,
    HttpAnswered,
    HttpListening,
    IssueHeld,
    IssueMoved,
    IssueReconciled,
    OrphansLeft,
    OrphansReaped,
    OrphansSought,
    PauseChanged,
    PollCompleted,
    RetryScheduled,
    RunFinished,
    RunPhaseChanged,
    RunRecovered,
    RunStarted,
    RunStopping,
    SessionRefused,
    SessionStarted,
    ShortageBegan,
    ShortageEnded,
    StateRestored,
    StatusFileRead,
    StoreFailed,
    StoreRecovered,
    TrackerAsked,
    TransitionCompleted,
    TurnCompleted,
    TurnStarted,
    WaitEnded,
    WorkflowReloaded,
    WorkspaceReady,
    WorkspaceRemoved,
)
from sortie.telemetry.gauges import GaugeCollector, Gauges
from sortie.telemetry.instruments import RETRY_TRIGGERS, Instruments

__all__ = ["Exposition", "GaugeCollector", "Gauges", "MetricsSink", "expose"]

TurnFact = SessionRefused | AgentLaunched | AgentAnswered | AgentSpoke | TurnCompleted
RunFact = (
    RunRecovered
    | RunStarted
    | DispatchDropped
    | RunFinished
    | RetryScheduled
    | IssueHeld
    | HookCompleted
)
TrackerFact = (
    PollCompleted | TrackerAsked | IssueReconciled | TransitionCompleted | CommentCompleted
)
DaemonFact = DaemonStarted | WorkflowReloaded | OrphansReaped | HttpAnswered


class MetricsSink:
    """Counts facts in a registry of its own; a registry can have one such sink."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # A time series for the moment of each counter's birth doubles the page and tells nothing.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._instruments = Instruments(registry)

    def __call__(self, fact: Fact) -> None:
        """Count a fact."""
        match fact:
            case (
                SessionRefused()
                | AgentLaunched()
                | AgentAnswered()
                | AgentSpoke()
                | TurnCompleted()
            ):
                self._count_turn(fact)
            case (
                RunRecovered()
                | RunStarted()
                | DispatchDropped()
                | RunFinished()
                | RetryScheduled()
                | IssueHeld()
                | HookCompleted()
            ):
                self._count_run(fact)
            case (
                PollCompleted()
                | TrackerAsked()
                | IssueReconciled()
                | TransitionCompleted()
                | CommentCompleted()
            ):
                self._count_tracker(fact)
            case DaemonStarted() | WorkflowReloaded() | OrphansReaped() | HttpAnswered():
                self._count_daemon(fact)
            case (
                DaemonStopping()
                | DaemonStopped()
                | RunPhaseChanged()
                | IssueMoved()
                | WorkspaceReady()
                | SessionStarted()
                | TurnStarted()
                | RunStopping()
                | WaitEnded()
                | HoldEnded()
                | HoldRestored()
                | StatusFileRead()
                | WorkspaceRemoved()
                | PauseChanged()
                | HostBack()
                | HostNoticed()
                | HostRested()
                | HostGivenUp()
                | OrphansLeft()
                | OrphansSought()
                | StateRestored()
                | StoreFailed()
                | StoreRecovered()
                | AgentSimulated()
                | HttpListening()
                | ControlUnavailable()
                | DaemonCrashed()
                | DaemonWasPaused()
                | ShortageBegan()
                | ShortageEnded()
                | AdapterCrashed()
            ):
                pass
            case _:
                assert_never(fact)

    def _count_turn(self, fact: TurnFact) -> None:
        to = self._instruments
        match fact:
            case SessionRefused(timed_out=timed_out):
                to.turn_timeouts.labels("read").inc(timed_out)
            case AgentLaunched(seconds_since_fetch=since):
                if since is not None:
                    to.dispatch_latency.observe(since)
            case AgentAnswered(agent=agent, seconds=seconds):
                to.turn_startup.labels(agent).observe(seconds)
            case AgentSpoke(agent=agent, lines=lines):
                to.turn_output_lines.labels(agent).inc(lines)
            case TurnCompleted(agent=agent, outcome=outcome, seconds=seconds):
                to.know_agent(agent)
                to.turns.labels(agent, outcome, fact.error_kind or "").inc()
                to.turn_duration.labels(agent, outcome).observe(seconds)
                to.agent_runtime.inc(_rise(seconds))
                to.turn_credits.labels(agent).inc(_rise(fact.credits))
                to.tokens.labels("total").inc(_rise(fact.tokens))
                if fact.timeout is not None:
                    to.turn_timeouts.labels(fact.timeout).inc()
            case _:
                assert_never(fact)

    def _count_run(self, fact: RunFact) -> None:
        to = self._instruments
        match fact:
            case RunStarted(agent=agent):
                to.know_agent(agent)
                to.dispatches.labels("started").inc()
            case DispatchDropped(outcome=outcome):
                to.dispatches.labels(outcome).inc()
            case RunRecovered():
                to.worker_exits.labels(RunStatus.INTERRUPTED).inc()
                to.retries.labels(Trigger.INTERRUPTED).inc()
            case RunFinished(status=status, seconds=seconds):
                to.worker_exits.labels(status).inc()
                to.worker_duration.labels(status).observe(seconds)
            case RetryScheduled(trigger=trigger):
                if trigger in RETRY_TRIGGERS:
                    to.retries.labels(trigger).inc()
            case IssueHeld(reason=reason):
                to.holds.labels(reason).inc()
            case HookCompleted(hook=hook, result=result, seconds=seconds):
                to.hook_runs.labels(hook, result).inc()
                to.hook_duration.labels(hook).observe(seconds)
            case _:
                assert_never(fact)

    def _count_tracker(self, fact: TrackerFact) -> None:
        to = self._instruments
        match fact:
            case PollCompleted(result=result, seconds=seconds):
                to.poll_cycles.labels(result).inc()
                if result != "skipped":
                    to.poll_duration.observe(seconds)
            case TrackerAsked(operation=operation, result=result):
                to.tracker_requests.labels(operation, result).inc()
            case IssueReconciled(action=action):
                to.reconciliation_actions.labels(action).inc()
            case TransitionCompleted(lifecycle="handoff", result=result):
                to.handoff_transitions.labels(result).inc()
            case TransitionCompleted(result=result):
                to.dispatch_transitions.labels(result).inc()
            case CommentCompleted(lifecycle=lifecycle, result=result):
                to.tracker_comments.labels(lifecycle, result).inc()
            case _:
                assert_never(fact)

    def _count_daemon(self, fact: DaemonFact) -> None:
        to = self._instruments
        match fact:
            case DaemonStarted(version=version, python_version=python_version, agent=agent):
                to.build_info.labels(version, python_version).set(1)
                to.know_agent(agent)
            case WorkflowReloaded(errors=errors):
                to.workflow_reloads.labels("error" if errors else "success").inc()
            case OrphansReaped(where=where, count=count):
                to.orphans_reaped.labels(where).inc(_rise(count))
            case HttpAnswered(route=route, status=status):
                to.http_requests.labels(route, str(status)).inc()
            case _:
                assert_never(fact)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposition:
    """All metrics as one page, and the media type of its format."""

    body: bytes
    content_type: str


def expose(registry: CollectorRegistry, accept: str) -> Exposition:
    """Render a registry in the format that an Accept header asks for; plain text otherwise."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # a version in the header that is no version
        encode, content_type = choose_encoder("")
    return Exposition(body=encode(registry), content_type=content_type)


def _rise(amount: float | None) -> float:
    """Return what a counter may grow by: unknown and nonsense are nothing."""
    return amount if amount is not None and math.isfinite(amount) and amount > 0 else 0
