"""What ties a life of the daemon to its world, until the plug is pulled: SIGKILL.

Rule 1: after that no task of the life can act on the world, shielded clean-up included: every
port goes through here, and raises Killed, which no code of the daemon catches.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

_T = TypeVar("_T")


class Killed(BaseException):
    """The life is over: raised wherever one of its tasks tries to act."""


class Plug:
    """One life's tie to the world; ``scope`` holds all its tasks."""

    def __init__(self) -> None:
        self.pulled = False
        self.scope = trio.CancelScope()
        self._waits: list[trio.CancelScope] = []

    def pull(self) -> None:
        """Kill the life."""
        self.pulled = True
        self.scope.cancel()
        for wait in self._waits:
            wait.cancel()

    async def through(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Have the world do something. Raises Killed, even where a shield keeps cancels off."""
        self.check()
        with trio.CancelScope() as wait:
            self._waits.append(wait)
            try:
                result = await request()
            finally:
                self._waits.remove(wait)
            self.check()
            return result
        raise Killed

    def check(self) -> None:
        """Raise Killed where the life is over."""
        if self.pulled:
            raise Killed
