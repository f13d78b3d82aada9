"""The slots of a client: so many requests are made at a time, and changes begin a gap apart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class RequestSlots:
    """Slots for requests; ``gap`` are the seconds between the beginnings of two changes."""

    def __init__(self, at_once: int, gap: float) -> None:
        self._slots = trio.CapacityLimiter(at_once)
        self._gap = gap
        self._changes = trio.Lock()
        self._next_change = float("-inf")

    @asynccontextmanager
    async def held(self, *, is_change: bool) -> AsyncIterator[None]:
        """Hold one of the slots, of which a change holds none while it waits.

        Changes take turns: the first in line waits for the end of the gap and then for a slot, so
        that two begin a gap apart however long the slots are taken.
        """
        if is_change and self._gap:
            async with self._changes:
                await trio.sleep_until(self._next_change)
                await self._slots.acquire()
                self._next_change = trio.current_time() + self._gap
        else:
            await self._slots.acquire()
        try:
            yield
        finally:
            self._slots.release()
