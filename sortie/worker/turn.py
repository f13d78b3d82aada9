"""One turn under its deadlines."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.agents import Session
from sortie.model import ErrorKind, TurnOutcome, TurnResult, cut
from sortie.model.numbers import seconds_text
from sortie.model.texts import start_of
from sortie.model.turns import NOTIFICATION_LIMIT
from sortie.telemetry import facts
from sortie.transports.lost_links import following_links
from sortie.worker.outcome import checked_time, port_error_kind, reset_time, sole_error
from sortie.worker.turn_events import TurnEvents, TurnRequest

LOGGED_WARNINGS = 20
"""Lines of stderr that are logged where a turn fails."""

SHOWN_WARNINGS = 3
"""Lines of stderr that stand in the message of a turn that fails."""

LAST_WORDS_LIMIT = 600
"""Characters of a program's own words in such a message."""

CONTENT_LIMIT = 32_768
"""Characters of a prompt or an answer in a span."""

_TELLING = frozenset(
    {
        ErrorKind.AGENT_NOT_FOUND,
        ErrorKind.PORT_EXIT,
        ErrorKind.RESPONSE_ERROR,
        ErrorKind.RESPONSE_TIMEOUT,
        ErrorKind.TURN_FAILED,
    }
)
"""Failures of which the agent's program itself may say more."""


class TurnEnd(Struct, frozen=True):
    """How a turn ended; ``error`` is what the adapter or a transport raised, ``timeout`` names the
    limit that ran out: turn or stall."""

    result: TurnResult
    error: Exception | None = None
    timeout: str | None = None


async def take_turn(turn: TurnRequest, session: Session) -> TurnEnd:
    """Run one prompt under the turn and stall deadlines; the cause wins over the exit.

    A result that the agent gave before a deadline stands. Being cancelled counts the turn as
    cancelled once its processes are gone.
    """
    settings, began = turn.context.settings.agent, trio.current_time()
    if turn.job.trace is not None:
        turn.job.trace.begin_turn()
    if turn.taken_over is None:
        turn.reporter.publish(
            facts.TurnBegan(
                run_id=turn.job.run_id,
                turn=turn.number,
                max_turns=settings.max_turns,
                agent=settings.kind,
                prompt=_content(turn, turn.prompt),
            )
        )
    before = turn.activity.answer
    end, heard = None, TurnEvents(turn)
    try:
        end = await _under_deadlines(turn, session, heard)
    finally:
        heard.end()
        last = end or TurnEnd(_cut_off())
        answer = None if turn.activity.answer is before else turn.activity.answer
        seconds = trio.current_time() - began + (turn.taken_over or 0.0)
        completed = _completed(turn, last, heard, seconds)
        if not turn.is_let_go():
            turn.reporter.publish(replace(completed, answer=_content(turn, answer)))
    return end


def _content(turn: TurnRequest, text: str | None) -> str | None:
    """Return a text as spans may have it, None where they are to have none."""
    traces = turn.context.settings.traces
    if text is None or traces is None or not traces.content:
        return None
    return cut(turn.context.redact(text), CONTENT_LIMIT)


async def _under_deadlines(turn: TurnRequest, session: Session, heard: TurnEvents) -> TurnEnd:
    settings = turn.context.settings.agent
    end: TurnEnd | None = None
    changed = heard.deadlines.link_changed
    with following_links(turn.context.transport, turn.job.run_id, changed), heard.deadlines.scope:
        try:
            end = TurnEnd(_checked(await session.run_turn(turn.prompt, heard.take)))
        except Exception as exc:  # known ones are the turn's end, others the run's
            end = _failed(sole_error(exc))
        end = _with_last_words(_clean(end, turn.context.redact), heard.last_line)
    if end is not None:
        return end
    said = f"; it said last: {cut(heard.last_line, LAST_WORDS_LIMIT)}" if heard.last_line else ""
    if not heard.deadlines.silence_is_first:
        return _late(
            TurnOutcome.TIMED_OUT,
            ErrorKind.TURN_TIMEOUT,
            "the turn took longer than agent.turn_timeout_ms"
            f" ({seconds_text(settings.turn_timeout)}){said}",
            "turn",
        )
    return _late(
        TurnOutcome.STALLED,
        ErrorKind.TURN_STALLED,
        "the agent was silent longer than agent.stall_timeout_ms"
        f" ({seconds_text(settings.stall_timeout)}){said}",
        "stall",
    )


def _clean(end: TurnEnd, redact: Callable[[str], str]) -> TurnEnd:
    """Return an end without secrets in its texts; they are cut afterwards."""
    message, warnings = end.result.message, end.result.warnings[-LOGGED_WARNINGS:]
    known = None if message is None else redact(message)
    told = tuple(map(redact, warnings))
    if known == message and told == end.result.warnings:
        return end
    return replace(end, result=replace(end.result, message=known, warnings=told))


def _with_last_words(end: TurnEnd, printed: str | None) -> TurnEnd:
    """Return the end of a failed turn with what its program has said last in the message.

    That is on its stderr, or else ``printed`` where it has ended without a result.
    """
    result = end.result
    if result.error_kind not in _TELLING or result.message is None:
        return end
    lines = list(result.warnings[-SHOWN_WARNINGS:])
    if not lines and result.error_kind is ErrorKind.PORT_EXIT and printed:
        lines = [printed]
    if not lines or lines[-1] in result.message:
        return end
    message = f"{result.message}: {cut('; '.join(lines), LAST_WORDS_LIMIT)}"
    return replace(end, result=replace(result, message=message))


def _checked(answer: object) -> TurnResult:
    """Return a turn's result. Raises TypeError and ValueError for what could not be recorded."""
    if not isinstance(answer, TurnResult) or not isinstance(answer.outcome, TurnOutcome):
        raise TypeError(f"a turn's result was expected, not {start_of(repr(answer), 200)}")
    checked_time(answer.resets_at)
    return answer


def _failed(error: Exception) -> TurnEnd:
    """Return the end of a turn that raised; raises what no adapter may raise."""
    kind = port_error_kind(error, ErrorKind.PORT_EXIT)
    if kind is None:
        raise error
    failed = TurnResult(
        outcome=TurnOutcome.FAILED,
        error_kind=kind,
        message=str(error),
        resets_at=reset_time(error),
    )
    return TurnEnd(failed, error=error)


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


def _late(outcome: TurnOutcome, kind: ErrorKind, message: str, timeout: str) -> TurnEnd:
    return TurnEnd(TurnResult(outcome=outcome, error_kind=kind, message=message), timeout=timeout)


def _completed(
    turn: TurnRequest, end: TurnEnd, heard: TurnEvents, seconds: float
) -> facts.TurnCompleted:
    result = end.result
    return facts.TurnCompleted(
        run_id=turn.job.run_id,
        agent=turn.context.settings.agent.kind,
        turn=turn.number,
        outcome=result.outcome,
        seconds=seconds,
        error_kind=result.error_kind,
        error=None if result.message is None else cut(result.message),
        spent=heard.usage.spent,
        warnings=tuple(
            cut(text, NOTIFICATION_LIMIT) for text in result.warnings[-LOGGED_WARNINGS:]
        ),
        timeout=end.timeout,
    )
