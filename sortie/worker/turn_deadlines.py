"""The two deadlines of a turn: for the whole turn, and for the silence of its agent."""

from __future__ import annotations

import math

import trio

from sortie.config.settings import AgentSettings

MOVE_INTERVAL = 0.1
"""Seconds after which output moves the deadline of the cancel scope again. An agent may write
thousands of lines a second, and is ended this much too early at most."""


HEARING = 30.0
"""Seconds that a turn has at least which another daemon has begun: what its agent has said
meanwhile is heard, however late it is."""


def turn_deadlines(settings: AgentSettings, taken_over: float | None) -> TurnDeadlines:
    """Return the deadlines of a turn, which another daemon has begun so many seconds ago if
    ``taken_over`` is not None."""
    limit, silence = settings.turn_timeout, settings.stall_timeout
    if taken_over is not None:
        limit = max(limit - taken_over, min(limit, HEARING))
    return TurnDeadlines(limit, silence if silence > 0 else math.inf)


class TurnDeadlines:
    """Cancels ``scope`` when the turn takes too long, or its agent is silent for too long.

    ``turn_limit`` and ``silence_limit`` are in seconds from now; inf means no limit.

    Rule: output that comes after a deadline does not move it: the turn is being ended.
    """

    def __init__(self, turn_limit: float, silence_limit: float) -> None:
        now = trio.current_time()
        self._silence_limit = silence_limit
        self._turn_ends_at = now + turn_limit
        self._silence_ends_at = now + silence_limit
        self._moved_at = now
        self.scope = trio.CancelScope(deadline=min(self._turn_ends_at, self._silence_ends_at))

    def output_came(self, now: float) -> None:
        """Begin to count the silence anew."""
        if now - self._moved_at >= MOVE_INTERVAL and self.are_ahead(now):
            self._moved_at = now
            self._silence_ends_at = now + self._silence_limit
            self.scope.deadline = min(self._turn_ends_at, self._silence_ends_at)

    def are_ahead(self, now: float) -> bool:
        """Tell whether neither deadline has passed."""
        return now < self.scope.deadline

    @property
    def silence_is_first(self) -> bool:
        """Whether the turn is ended by its agent's silence, where one of the deadlines ends it."""
        return self._silence_ends_at < self._turn_ends_at
