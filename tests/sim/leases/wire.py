"""The network between one process and one service: messages are late or lost in each direction.

Rule 1: what was sent is delivered although its sender dies, unless the network loses it.
Rule 2: a sender learns nothing of a lost message or a lost answer but that no answer came.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Generic, TypeVar

import trio

from sortie.model import SortieError

_T = TypeVar("_T")


class NoAnswerError(SortieError):
    """No answer came in time; the request may have been carried out."""


@dataclass(slots=True)
class Weather:
    """How messages fare. ``there`` and ``back`` are the seconds that a way takes at most, and half
    of that at least; ``lost`` and ``unanswered`` the chances that a request, or its answer, does
    not come through."""

    cut: bool = False
    there: float = 0.0
    back: float = 0.0
    lost: float = 0.0
    unanswered: float = 0.0

    @property
    def is_fair(self) -> bool:
        """Whether each message comes through at once."""
        return not (self.cut or self.there or self.back or self.lost or self.unanswered)


@dataclass(slots=True)
class _Outcome(Generic[_T]):
    over: trio.Event = field(default_factory=trio.Event)
    values: list[_T] = field(default_factory=list)
    error: Exception | None = None

    def result(self) -> _T:
        if self.error is not None:
            raise self.error
        return self.values[0]


class Wire:
    """The way to one service. ``common`` is the weather at the service, for all that ask it."""

    def __init__(self, nursery: trio.Nursery, draw: Random, common: Weather) -> None:
        self._nursery = nursery
        self._draw = draw
        self.weather = Weather()
        self.common = common

    @property
    def is_cut(self) -> bool:
        """Whether no message comes through."""
        return self.weather.cut or self.common.cut

    @property
    def is_fair(self) -> bool:
        """Whether each message comes through at once."""
        return self.weather.is_fair and self.common.is_fair

    async def ask(self, request: Callable[[], Awaitable[_T]], patience: float) -> _T:
        """Have the service carry a request out. Raises NoAnswerError, and what the request does."""
        await trio.lowlevel.checkpoint()
        if self.is_fair:
            return await self._ask_at_once(request, patience)
        outcome = _Outcome[_T]()
        if not self._happens("lost"):
            self._nursery.start_soon(self._deliver, request, self._way("there"), outcome)
        with trio.move_on_after(patience):
            await outcome.over.wait()
            if not self._happens("unanswered"):
                await trio.sleep(self._way("back"))
                if not self.is_cut:
                    return outcome.result()
            await trio.sleep_forever()
        raise NoAnswerError(f"there was no answer within {patience:g} s")

    async def _ask_at_once(self, request: Callable[[], Awaitable[_T]], patience: float) -> _T:
        outcome = _Outcome[_T]()
        await self._deliver(request, 0.0, outcome)
        if not outcome.over.is_set() or self.is_cut:
            await trio.sleep(patience)
            raise NoAnswerError(f"there was no answer within {patience:g} s")
        return outcome.result()

    async def _deliver(
        self, request: Callable[[], Awaitable[_T]], seconds: float, outcome: _Outcome[_T]
    ) -> None:
        if seconds:
            await trio.sleep(seconds)
        if self.is_cut:
            return
        try:
            outcome.values.append(await request())
        except Exception as error:  # the edge: the one who asked gets it
            outcome.error = error
        outcome.over.set()

    def _happens(self, name: str) -> bool:
        if self.is_cut:
            return True
        chance: float = max(getattr(self.weather, name), getattr(self.common, name))
        return self._draw.random() < chance

    def _way(self, name: str) -> float:
        most = max(getattr(self.weather, name), getattr(self.common, name))
        return self._draw.uniform(most / 2, most)
