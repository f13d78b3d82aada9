"""An observation that is made once for all who ask for it at the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

T = TypeVar("T")


class Shared(Generic[T]):
    """Answers each caller with an observation that was begun after the caller asked.

    Callers that come while one is being made share the next one, so however many ask, at most
    two are made in the time of two. A failed or cancelled observation is made again by the next
    in the queue.
    """

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self._lock = trio.Lock()
        self._begun = 0
        self._latest: tuple[int, T] | None = None

    @property
    def begun(self) -> int:
        """How many observations were begun so far."""
        return self._begun

    async def ask(self) -> T:
        """Return an observation begun after this call; raises what making it raises."""
        begun_before = self._begun
        async with self._lock:
            if self._latest is not None and self._latest[0] > begun_before:
                return self._latest[1]
            self._begun += 1
            number = self._begun
            value = await self._make()
            self._latest = (number, value)
            return value
