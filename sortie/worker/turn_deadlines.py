"""The two deadlines of a turn: for the whole turn, and for the silence of its agent."""

from __future__ import annotations

import math

import trio

from sortie.config.settings import AgentSettings
from sortie.transports.lost_links import HEARING

MOVE_INTERVAL = 0.1
"""Seconds after which output moves the deadline of the cancel scope again. An agent may write
thousands of lines a second, and is ended this much too early at most."""


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

    Rule 1: output that comes after a deadline does not move it: the turn is being ended.
    Rule 2: while the link to the agent's host is lost its silence is not counted, as the agent
    cannot be heard. Who waits for the link ends the turn where it does not come back.
    """

    def __init__(self, turn_limit: float, silence_limit: float) -> None:
        now = trio.current_time()
        self._silence_limit = silence_limit
        self._turn_ends_at = now + turn_limit
        self._silence_ends_at = now + silence_limit
        self._moved_at = now
        self._left_at_loss: float | None = None  # seconds of silence, while the link is lost
        self.scope = trio.CancelScope(deadline=min(self._turn_ends_at, self._silence_ends_at))

    def output_came(self, now: float) -> None:
        """Begin to count the silence anew."""
        if self._left_at_loss is not None:
            self._left_at_loss = self._silence_limit
        elif now - self._moved_at >= MOVE_INTERVAL and self.are_ahead(now):
            self._moved_at = now
            self._end_silence_at(now + self._silence_limit)

    def link_changed(self, lost: bool) -> None:
        """Stop to count the silence where the link to the agent's host is lost, and go on with what
        was left, or HEARING, where it is there again."""
        now = trio.current_time()
        if not self.are_ahead(now) or lost == (self._left_at_loss is not None):
            return
        if lost:
            self._left_at_loss = self._silence_ends_at - now
            self._end_silence_at(math.inf)
        else:
            left = max(self._left_at_loss or 0.0, min(HEARING, self._silence_limit))
            self._left_at_loss = None
            self._end_silence_at(now + left)

    def _end_silence_at(self, time: float) -> None:
        self._silence_ends_at = time
        self.scope.deadline = min(self._turn_ends_at, time)

    def are_ahead(self, now: float) -> bool:
        """Tell whether neither deadline has passed."""
        return now < self.scope.deadline

    @property
    def silence_is_first(self) -> bool:
        """Whether the turn is ended by its agent's silence, where one of the deadlines ends it."""
        return self._silence_ends_at < self._turn_ends_at
