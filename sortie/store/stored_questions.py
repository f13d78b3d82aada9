"""The row of a question."""

from __future__ import annotations

from msgspec import Struct

from sortie.model.asked_questions import AskedQuestion


class StoredQuestion(Struct, frozen=True, kw_only=True):
    """The newest question of an issue; it was recorded at ``asked_at`` with ``delay`` seconds, and
    its default counts at ``due_at`` (both in Unix seconds), None where it never does by itself."""

    asked: AskedQuestion
    asked_at: float
    delay: float | None = None
    due_at: float | None = None
