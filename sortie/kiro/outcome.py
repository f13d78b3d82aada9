"""Decide what became of a turn, from how its process ended and what it wrote."""

from __future__ import annotations

import signal

from sortie.kiro.transcript import Evidence
from sortie.model import ErrorKind, TurnOutcome, TurnResult
from sortie.transports import Exit

_COMMAND_NOT_FOUND = 127
_CANCELLING = (signal.SIGTERM, signal.SIGKILL)

_MEANINGS = {
    1: "an error; its warnings say more",
    2: "it did not accept its arguments; does this version of Kiro know every kiro.* setting?",
    3: "a required MCP server did not start",
    4: "the agent named by kiro.agent does not exist",
    255: "where it runs over SSH, the connection failed",
}


def turn_result(end: Exit | None, evidence: Evidence) -> TurnResult:
    """Return the outcome of a turn; ``end`` is None where Sortie ended it before it exited.

    Exit 0 alone is no success: Kiro exits 0 with a bad key too. Only the trailer proves that a turn
    ran. Credits are given whatever the outcome, since they were spent.
    """
    spent = evidence.trailer.credits if evidence.trailer else None
    kind, message = _failure(end, evidence)
    if kind is None:
        return TurnResult(outcome=TurnOutcome.COMPLETED, credits=spent)
    cancelled = kind is ErrorKind.TURN_CANCELLED
    return TurnResult(
        outcome=TurnOutcome.CANCELLED if cancelled else TurnOutcome.FAILED,
        error_kind=kind,
        message=message,
        credits=spent,
        warnings=evidence.warnings,
    )


def _failure(end: Exit | None, evidence: Evidence) -> tuple[ErrorKind | None, str | None]:
    """Return the kind and message of a failure; ``(None, None)`` where the turn completed."""
    if evidence.line_too_long:
        return ErrorKind.PORT_EXIT, "kiro wrote a line of more than 10 MiB; the turn was ended"
    if end is None or end.by_us:
        return ErrorKind.TURN_CANCELLED, "kiro was stopped"
    if end.status == 0:
        return _failure_at_exit_0(evidence)
    if end.status == _COMMAND_NOT_FOUND:
        return ErrorKind.AGENT_NOT_FOUND, "kiro was not found (exit 127); check agent.command"
    killed_by = _signal(end)
    if killed_by in _CANCELLING:
        return ErrorKind.TURN_CANCELLED, f"kiro was ended from outside by {_name(killed_by)}"
    if end.signal is not None:
        return ErrorKind.PORT_EXIT, f"kiro was ended by {_name(end.signal)}"
    if end.status is None:
        return ErrorKind.PORT_EXIT, "kiro's exit status was lost"
    meaning = _MEANINGS.get(end.status)
    reason = f"{end.status} ({meaning})" if meaning else str(end.status)
    return ErrorKind.PORT_EXIT, f"kiro exited with a non-zero status: {reason}"


def _failure_at_exit_0(evidence: Evidence) -> tuple[ErrorKind | None, str | None]:
    if evidence.trailer:
        return None, None
    if evidence.printed == 0 and evidence.authentication_failed:
        return ErrorKind.RESPONSE_ERROR, "kiro authentication failed"
    return ErrorKind.TURN_FAILED, "kiro exited without a credits trailer"


def _signal(end: Exit) -> int | None:
    """Return the signal that ended the process, also where a shell made an exit status of it."""
    if end.status in (128 + signal.SIGTERM, 128 + signal.SIGKILL):
        return end.status - 128
    return end.signal


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
