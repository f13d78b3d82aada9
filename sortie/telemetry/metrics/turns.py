"""Metrics of agents and their turns, and how facts feed them."""

from __future__ import annotations

from functools import singledispatch

from prometheus_client import Counter

from sortie.facts import Fact
from sortie.model import ErrorKind, TurnOutcome
from sortie.telemetry import facts
from sortie.telemetry.metrics.factory import REQUEST_BUCKETS, RUN_BUCKETS, MetricFactory, rise

_TURN_ENDS = (
    (TurnOutcome.COMPLETED, ""),
    (TurnOutcome.TIMED_OUT, ErrorKind.TURN_TIMEOUT),
    (TurnOutcome.STALLED, ErrorKind.TURN_STALLED),
    (TurnOutcome.CANCELLED, ErrorKind.TURN_CANCELLED),
    (TurnOutcome.FAILED, ErrorKind.AGENT_NOT_FOUND),
    (TurnOutcome.FAILED, ErrorKind.INVALID_WORKSPACE_CWD),
    (TurnOutcome.FAILED, ErrorKind.ADAPTER_SETTINGS),
    (TurnOutcome.FAILED, ErrorKind.RESPONSE_ERROR),
    (TurnOutcome.FAILED, ErrorKind.RESPONSE_TIMEOUT),
    (TurnOutcome.FAILED, ErrorKind.TURN_FAILED),
    (TurnOutcome.FAILED, ErrorKind.PORT_EXIT),
    (TurnOutcome.FAILED, ErrorKind.USAGE_LIMIT),
)


class TurnMetrics:
    """Attribute names are metric names without ``sortie_``."""

    def __init__(self, make: MetricFactory) -> None:
        self._agents: set[str] = set()
        self.turns = make.counter("turns", "Turns that ended.", agent=(), outcome=(), error_kind=())
        self.turn_timeouts = make.counter(
            "turn_timeouts", "Limits that ran out during a turn.", kind=("turn", "stall", "read")
        )
        self.turn_credits = make.counter(
            "turn_credits", "Credits that agents reported to have used.", agent=()
        )
        self.turn_cost = make.counter(
            "turn_cost_usd",
            "US dollars that turns cost, as agents told it or by the rates of their tokens.",
            agent=(),
        )
        self.usage_limits = make.counter(
            "usage_limits", "Usage limits of an agent's account that were reached.", agent=()
        )
        self.turn_output_lines = make.counter(
            "turn_output_lines", "Non-empty lines of output that agents wrote.", agent=()
        )
        self.tokens = make.counter(
            "tokens",
            "Tokens that agents reported; the total is input and output, and input holds cached.",
            type=("total", "input", "output", "cached"),
        )
        self.agent_runtime = make.counter(
            "agent_runtime_seconds", "Seconds that turns took, in total."
        )
        self.turn_duration = make.histogram(
            "turn_duration_seconds",
            "Time from prompt to outcome.",
            RUN_BUCKETS,
            agent=(),
            outcome=(),
        )
        self.turn_startup = make.histogram(
            "turn_startup_seconds",
            "Time from a process's launch to its first byte.",
            REQUEST_BUCKETS,
            agent=(),
        )
        self.model_answer = make.histogram(
            "model_answer_seconds",
            "Time from a request to an agent's model to its answer.",
            RUN_BUCKETS,
            agent=(),
        )

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
        self.turn_cost.labels(agent)
        self.usage_limits.labels(agent)
        self.turn_output_lines.labels(agent)
        self.turn_startup.labels(agent)
        self.model_answer.labels(agent)


@singledispatch
def count(fact: Fact, to: TurnMetrics) -> None:
    """Count a fact; a kind without a function below is not counted here."""


@count.register
def _(fact: facts.RunStarted, to: TurnMetrics) -> None:
    to.know_agent(fact.agent)


@count.register
def _(fact: facts.RunTakenOver, to: TurnMetrics) -> None:
    to.know_agent(fact.agent)


@count.register
def _(fact: facts.DaemonStarted, to: TurnMetrics) -> None:
    to.know_agent(fact.agent)


@count.register
def _(fact: facts.AgentLimited, to: TurnMetrics) -> None:
    to.know_agent(fact.agent)
    to.usage_limits.labels(fact.agent).inc()


@count.register
def _(fact: facts.SessionRefused, to: TurnMetrics) -> None:
    to.turn_timeouts.labels("read").inc(fact.timed_out)


@count.register
def _(fact: facts.AgentAnswered, to: TurnMetrics) -> None:
    to.turn_startup.labels(fact.agent).observe(fact.seconds)


@count.register
def _(fact: facts.ModelAnswerTimed, to: TurnMetrics) -> None:
    to.model_answer.labels(fact.agent).observe(rise(fact.seconds))


@count.register
def _(fact: facts.AgentSpoke, to: TurnMetrics) -> None:
    to.turn_output_lines.labels(fact.agent).inc(fact.lines)


@count.register
def _(fact: facts.TurnCompleted, to: TurnMetrics) -> None:
    to.know_agent(fact.agent)
    to.turns.labels(fact.agent, fact.outcome, fact.error_kind or "").inc()
    to.turn_duration.labels(fact.agent, fact.outcome).observe(fact.seconds)
    to.agent_runtime.inc(rise(fact.seconds))
    spent = fact.spent
    _add(to.turn_credits, fact.agent, spent.credits)
    _add(to.turn_cost, fact.agent, spent.cost_usd)
    _add(to.tokens, "total", spent.tokens)
    _add(to.tokens, "input", spent.input_tokens)
    _add(to.tokens, "output", spent.output_tokens)
    _add(to.tokens, "cached", spent.cached_tokens)
    if fact.timeout is not None:
        to.turn_timeouts.labels(fact.timeout).inc()


def _add(counter: Counter, label: str, amount: float | None) -> None:
    """Let a counter rise, looked up only where it does: it has begun at 0."""
    if more := rise(amount):
        counter.labels(label).inc(more)
