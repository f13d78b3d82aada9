"""The two deadlines of a turn in one cancel scope: the turn's own, and that of silence."""

from __future__ import annotations

import math

import trio


class TurnDeadlines:
    """Begins with the turn; ``patience`` is for how many seconds the agent may say nothing, inf
    where that is not limited.

    Rule: what is heard after the deadline pushes nothing on: the turn is being ended.
    """

    def __init__(self, seconds: float, patience: float) -> None:
        now = trio.current_time()
        self._patience = patience
        self._turn = now + seconds
        self._silence = now + patience
        self.scope = trio.CancelScope(deadline=min(self._turn, self._silence))

    def heard(self, now: float) -> None:
        """Take a sign of life."""
        if self._patience < math.inf and now < self.scope.deadline:
            self._silence = now + self._patience
            self.scope.deadline = min(self._turn, self._silence)

    @property
    def silence_is_first(self) -> bool:
        """Whether it is the silence that ends the turn, where one of the two does."""
        return self._silence < self._turn
