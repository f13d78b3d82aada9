"""The two deadlines of a turn: the turn's own, and that of silence.

To move the deadline of a cancel scope costs as much as to read the line that moves it. So a sign of
life is only noted, and one task watches all turns: it looks when the first of the silences that it
knows of would be too long, and by then most have ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import trio


class TurnDeadlines:
    """Begins with the turn; ``patience`` is for how many seconds the agent may say nothing, inf
    where that is not limited.

    Rule: what is heard after the deadline pushes nothing on: the turn is being ended.
    """

    def __init__(self, seconds: float, patience: float) -> None:
        now = trio.current_time()
        self._patience = patience
        self.silence = now + patience
        """When the agent will have been silent for too long; inf where there is no such time."""
        self.scope = trio.CancelScope(deadline=now + seconds)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Cancel the block at the earlier of the two."""
        with self.scope:
            if self._patience == math.inf:
                yield
            else:
                with _current_watch().over(self):
                    yield

    def heard(self, now: float) -> None:
        """Take a sign of life."""
        if now < self.silence:
            self.silence = now + self._patience

    def are_ahead(self, now: float) -> bool:
        """Tell whether the turn goes on: neither of the two has passed."""
        return now < self.silence and now < self.scope.deadline

    @property
    def silence_is_first(self) -> bool:
        """Whether it is the silence that ends the turn, where one of the two does."""
        return self.silence < self.scope.deadline


class _SilenceWatch:
    """Cancels the turns whose agents are silent for too long, of one run of trio.

    Its task runs from the first turn on, as long as trio does.
    """

    def __init__(self) -> None:
        self._turns: dict[TurnDeadlines, None] = {}  # in a set their order would be by chance
        self._sleep = trio.CancelScope()
        self._runs = False

    @contextmanager
    def over(self, turn: TurnDeadlines) -> Iterator[None]:
        """Watch a turn for the length of the block."""
        if not self._runs:
            self._runs = True
            trio.lowlevel.spawn_system_task(self._run)
        self._turns[turn] = None
        self._sleep.deadline = min(self._sleep.deadline, turn.silence)
        try:
            yield
        finally:
            del self._turns[turn]
            if not self._turns:
                self._sleep.deadline = math.inf

    async def _run(self) -> None:
        while True:
            now = trio.current_time()
            for turn in self._turns:
                if turn.silence <= now:
                    turn.scope.cancel()
            going_on = (turn.silence for turn in self._turns if turn.silence > now)
            self._sleep = trio.CancelScope(deadline=min(going_on, default=math.inf))
            with self._sleep:
                await trio.sleep_forever()


_CURRENT: trio.lowlevel.RunVar[_SilenceWatch] = trio.lowlevel.RunVar("watch over silences")


def _current_watch() -> _SilenceWatch:
    try:
        return _CURRENT.get()
    except LookupError:
        watch = _SilenceWatch()
        _CURRENT.set(watch)
        return watch
