"""Operators' commands under way: each has a number, under which its answer comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from sortie.scheduler import Event
from sortie.scheduler.decisions import AnswerCommand

COMMAND_TIMEOUT = 7.0
"""Seconds that an operator waits for a command to be on record; who asks by HTTP waits for 10."""


@dataclass(slots=True)
class _Pending:
    """A command whose operator waits."""

    answered: trio.Event = field(default_factory=trio.Event)
    answer: AnswerCommand | None = None


class PendingCommands:
    """Brings commands and answers together; ``tell`` takes a command's event."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell
        self._pending: dict[int, _Pending] = {}
        self._count = 0

    async def ask(self, command: Callable[[int], Event]) -> AnswerCommand | None:
        """Tell the event that ``command`` makes of its number, and wait for the answer.

        None: there was none within COMMAND_TIMEOUT.
        """
        self._count += 1
        number = self._count
        pending = self._pending[number] = _Pending()
        self._tell(command(number))
        try:
            with trio.move_on_after(COMMAND_TIMEOUT):
                await pending.answered.wait()
        finally:
            del self._pending[number]
        return pending.answer

    def answer(self, answer: AnswerCommand) -> None:
        """Give an answer to who waits for it, if anybody still does."""
        if (pending := self._pending.get(answer.ask)) is not None:
            pending.answer = answer
            pending.answered.set()
