"""One turn under its deadlines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import trio

from sortie.agents import Session
from sortie.model import (
    AgentError,
    AgentEvent,
    ErrorKind,
    Launched,
    Notification,
    ProcessIdentity,
    TurnOutcome,
    TurnResult,
)
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.worker.context import Assignment, Reports, RunContext

_TOKENS_LIMIT = 2**53


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt and where it stands in its run."""

    job: Assignment
    number: int
    prompt: str
    bench: RunContext
    reports: Reports


class TurnEvents:
    """Hears what the agent says; every sign of life pushes the stall deadline on."""

    def __init__(self, turn: Turn, stall: trio.CancelScope) -> None:
        self._turn = turn
        self._stall = stall
        self._patience = turn.bench.settings.agent.stall_timeout
        self._launched_at: float | None = None

    def hear(self, batch: Sequence[AgentEvent]) -> None:
        """Take a batch of events; an empty one is a sign of life."""
        if self._patience > 0 and not self._stall.cancel_called:
            self._stall.deadline = trio.current_time() + self._patience
        lines, message = 0, None
        for event in batch:
            match event:
                case Launched(process=ProcessIdentity()):
                    self._launched(event)
                case Notification(message=str(text)):
                    lines, message = lines + 1, text
                case _:
                    raise TypeError(f"an agent's event was expected, not {type(event).__name__}")
        if not any(isinstance(event, Launched) for event in batch):
            self._answered()
            self._spoke(lines, message)

    def _launched(self, event: Launched) -> None:
        now, turn = trio.current_time(), self._turn
        self._launched_at = now
        turn.reports.tell(ev.ProcessLaunched(turn.job.run_id, event.process))
        turn.reports.publish(
            facts.AgentLaunched(
                run_id=turn.job.run_id,
                turn=turn.number,
                process=event.process,
                seconds_since_fetch=now - turn.job.fetched_at if turn.number == 1 else None,
            )
        )

    def _answered(self) -> None:
        if self._launched_at is None:
            return
        seconds, self._launched_at = trio.current_time() - self._launched_at, None
        turn = self._turn
        kind = turn.bench.settings.agent.kind
        turn.reports.publish(
            facts.AgentAnswered(run_id=turn.job.run_id, agent=kind, seconds=seconds)
        )

    def _spoke(self, lines: int, message: str | None) -> None:
        turn = self._turn
        turn.reports.publish(
            facts.AgentSpoke(
                run_id=turn.job.run_id,
                agent=turn.bench.settings.agent.kind,
                lines=lines,
                message=message,
            )
        )


async def take_turn(turn: Turn, session: Session) -> TurnResult:
    """Run one prompt under the turn and stall deadlines; the cause wins over the exit.

    A result that the agent gave before a deadline stands. Being cancelled counts the turn as
    cancelled once its processes are gone.
    """
    settings, began = turn.bench.settings.agent, trio.current_time()
    turn.reports.publish(
        facts.TurnBegan(run_id=turn.job.run_id, turn=turn.number, max_turns=settings.max_turns)
    )
    timeout: str | None = None
    result: TurnResult | None = None
    try:
        result, timeout = await _under_deadlines(turn, session)
    finally:
        told = result or _cut_off()
        turn.reports.publish(_completed(turn, told, trio.current_time() - began, timeout))
    return result


async def _under_deadlines(turn: Turn, session: Session) -> tuple[TurnResult, str | None]:
    settings = turn.bench.settings.agent
    patience = settings.stall_timeout if settings.stall_timeout > 0 else math.inf
    result: TurnResult | None = None
    with trio.move_on_after(settings.turn_timeout) as deadline:
        with trio.move_on_after(patience) as stall:
            try:
                ear = TurnEvents(turn, stall)
                answer = await session.run_turn(turn.prompt, ear.hear)
                result = _checked(answer)
            except AgentError as exc:
                result = TurnResult(
                    outcome=TurnOutcome.FAILED, error_kind=exc.kind, message=str(exc)
                )
    if result is not None:
        return result, None
    if deadline.deadline <= stall.deadline:  # the earlier one ended the turn
        return _late(
            TurnOutcome.TIMED_OUT,
            ErrorKind.TURN_TIMEOUT,
            f"the turn took longer than agent.turn_timeout_ms ({settings.turn_timeout:g} s)",
        ), "turn"
    return _late(
        TurnOutcome.STALLED,
        ErrorKind.TURN_STALLED,
        f"the agent was silent longer than agent.stall_timeout_ms ({patience:g} s)",
    ), "stall"


def _checked(answer: object) -> TurnResult:
    """Return a turn's result. Raises TypeError and ValueError for what nobody could record."""
    if not isinstance(answer, TurnResult) or not isinstance(answer.outcome, TurnOutcome):
        raise TypeError(f"a turn's result was expected, not {answer!r:.200}")
    if answer.credits is not None and not math.isfinite(answer.credits):
        raise ValueError(f"a turn cannot cost {answer.credits} credits")
    if answer.tokens is not None and not 0 <= answer.tokens < _TOKENS_LIMIT:
        raise ValueError(f"a turn cannot take {answer.tokens} tokens")
    return answer


def _cut_off() -> TurnResult:
    """Return how a turn ended that gave no result: it was stopped, or the agent crashed."""
    if trio.current_effective_deadline() == -math.inf:
        return TurnResult(
            outcome=TurnOutcome.CANCELLED,
            error_kind=ErrorKind.TURN_CANCELLED,
            message="the turn was stopped",
        )
    return TurnResult(
        outcome=TurnOutcome.FAILED,
        error_kind=ErrorKind.INTERNAL_ERROR,
        message="the agent's adapter crashed",
    )


def _late(outcome: TurnOutcome, kind: ErrorKind, message: str) -> TurnResult:
    return TurnResult(outcome=outcome, error_kind=kind, message=message)


def _completed(
    turn: Turn, result: TurnResult, seconds: float, timeout: str | None
) -> facts.TurnCompleted:
    return facts.TurnCompleted(
        run_id=turn.job.run_id,
        agent=turn.bench.settings.agent.kind,
        turn=turn.number,
        outcome=result.outcome,
        seconds=seconds,
        error_kind=result.error_kind,
        error=result.message,
        credits=result.credits,
        tokens=result.tokens,
        warnings=result.warnings,
        timeout=timeout,
    )
