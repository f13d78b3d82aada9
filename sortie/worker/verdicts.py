"""What to do after a turn, as a pure function."""

from __future__ import annotations

from enum import StrEnum

from sortie.model import (
    ErrorKind,
    Failed,
    Finish,
    Finished,
    RunEnd,
    RunStatus,
    TurnOutcome,
    TurnResult,
)
from sortie.worker.rereading import Gone, Reread, Unreadable


class StatusWord(StrEnum):
    """A word that an agent may leave in ``.sortie/status``."""

    BLOCKED = "blocked"
    NEEDS_HUMAN_REVIEW = "needs-human-review"

    @classmethod
    def of(cls, text: str) -> StatusWord | None:
        """Return the word that a status file's text is, or None where it means nothing."""
        try:
            return cls(text.strip().casefold())
        except ValueError:
            return None


_FINISHES = {
    StatusWord.BLOCKED: Finish.BLOCKED,
    StatusWord.NEEDS_HUMAN_REVIEW: Finish.REVIEW,
}
_STATUSES = {
    TurnOutcome.FAILED: RunStatus.FAILED,
    TurnOutcome.TIMED_OUT: RunStatus.TIMED_OUT,
    TurnOutcome.STALLED: RunStatus.STALLED,
    TurnOutcome.CANCELLED: RunStatus.CANCELLED,
}


def after_turn(
    result: TurnResult, word: StatusWord | None, *, read: Reread | Gone | Unreadable | None
) -> RunEnd:
    """Return how the run ends: the agent's word counts most, then the turn's own failure.

    ``read`` is the issue as re-read after the turn; None where it was not.
    """
    if word is not None:
        return Finished(finish=_FINISHES[word])
    if result.outcome is not TurnOutcome.COMPLETED:
        return Failed(
            kind=result.error_kind or ErrorKind.TURN_FAILED,
            message=result.message or "the turn failed",
            status=_STATUSES[result.outcome],
        )
    match read:
        case Gone():
            return Finished(finish=Finish.GONE)
        case Reread():
            return Finished(finish=Finish.LEFT_ACTIVE)
        case Unreadable() | None:
            return Finished(finish=Finish.UNREADABLE)
