"""What the exit of an agent's process means for its turn, for every agent; pure."""

from __future__ import annotations

import signal
from datetime import datetime

from msgspec import Struct

from sortie.model import ErrorKind, TurnOutcome, TurnResult
from sortie.transports import Exit

_COMMAND_NOT_FOUND = 127
_CANCELLING = (signal.SIGTERM, signal.SIGKILL)


class Failure(Struct, frozen=True):
    """Why a turn did not complete; ``resets_at`` as in TurnResult."""

    kind: ErrorKind
    message: str
    resets_at: datetime | None = None

    def result(self, warnings: tuple[str, ...] = ()) -> TurnResult:
        """Return the turn's result."""
        cancelled = self.kind is ErrorKind.TURN_CANCELLED
        return TurnResult(
            outcome=TurnOutcome.CANCELLED if cancelled else TurnOutcome.FAILED,
            error_kind=self.kind,
            message=self.message,
            warnings=warnings,
            resets_at=self.resets_at,
        )


def exit_failure(agent: str, end: Exit | None) -> Failure | None:
    """Return the failure that an exit is for every agent.

    None where the process exited with a status that only its adapter understands. ``end`` is None
    where Sortie ended the process before it exited.
    """
    if end is None or end.by_us:
        return Failure(ErrorKind.TURN_CANCELLED, f"{agent} was stopped")
    if end.status == _COMMAND_NOT_FOUND:
        message = f"{agent} was not found (exit 127); check agent.command"
        return Failure(ErrorKind.AGENT_NOT_FOUND, message)
    killed_by = _signal(end)
    if killed_by in _CANCELLING:
        message = f"{agent} was ended from outside by {_name(killed_by)}"
        return Failure(ErrorKind.TURN_CANCELLED, message)
    if end.signal is not None:
        return Failure(ErrorKind.PORT_EXIT, f"{agent} was ended by {_name(end.signal)}")
    if end.status is None:
        return Failure(ErrorKind.PORT_EXIT, f"{agent}'s exit status was lost")
    return None


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
