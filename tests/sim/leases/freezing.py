"""A process that can be stopped and woken, besides being killed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from tests.sim.system.plug import Plug

_T = TypeVar("_T")


class FreezablePlug(Plug):
    """One process's tie to the world. While it is frozen no request leaves the process, and no
    answer is heard; what was to be sent is sent as soon as it is awake. ``frozen_at`` is what its
    clock showed then: a process that stands still sees no time pass."""

    def __init__(self) -> None:
        super().__init__()
        self._thawed: trio.Event | None = None
        self.frozen_at = 0.0

    @property
    def is_frozen(self) -> bool:
        """Whether the process stands still."""
        return self._thawed is not None

    def freeze(self, at: float = 0.0) -> None:
        """Have the process stand still, at a time of its clock."""
        if self._thawed is None:
            self._thawed = trio.Event()
            self.frozen_at = at

    def thaw(self) -> None:
        """Wake the process."""
        if self._thawed is not None:
            self._thawed.set()
            self._thawed = None

    async def awake(self) -> None:
        """Wait until the process does not stand still."""
        while self._thawed is not None:
            await self._thawed.wait()

    async def through(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Have the world do something. Raises Killed, even where a shield keeps cancels off."""

        async def request_awake() -> _T:
            await self.awake()
            answer = await request()
            await self.awake()
            return answer

        return await super().through(request_awake)
