"""What an operator wants of the scheduler.

``ask`` numbers a command, and AnswerCommand carries the same number; 0: no answer is wanted.
"""

from __future__ import annotations

from msgspec import Struct

from sortie.model.asked_questions import QuestionAnswer


class RefreshRequested(Struct, frozen=True):
    """Someone wants a poll now."""

    ask: int = 0


class PauseAsked(Struct, frozen=True):
    """An operator pauses dispatch, or resumes it."""

    paused: bool
    ask: int = 0


class StopAsked(Struct, frozen=True):
    """An operator ends the run or wait of an issue, named by identifier or id, and parks it."""

    issue: str
    ask: int = 0


class RetryAsked(Struct, frozen=True):
    """An operator wants a waiting or held issue, named by identifier or id, to run now."""

    issue: str
    ask: int = 0


class AnswerSent(Struct, frozen=True):
    """An operator answers the question of an issue, named by identifier or id."""

    issue: str
    answer: QuestionAnswer
    ask: int = 0
