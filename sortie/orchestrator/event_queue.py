"""The events on their way to the loop, in the order in which they were told."""

from __future__ import annotations

from contextlib import suppress

import trio

from sortie.scheduler import Event
from sortie.scheduler import events as ev

Item = tuple[Event, trio.Event | None]
"""An event, and what is set once everything that it led to is on disk and performed, if wanted."""


class EventQueue:
    """Takes events from anybody, and gives them to the loop.

    Unbounded on purpose: producers must never block on, or drop, an exit. What agents say does not
    come through here; what does is a few events a run.
    """

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[Item](float("inf"))

    def tell(self, event: Event) -> None:
        """Put an event in; returns at once."""
        self._send.send_nowait((event, None))

    async def commit(self, event: Event) -> None:
        """Put an event in and return once what it records is on disk."""
        done = trio.Event()
        self._send.send_nowait((event, done))
        await done.wait()

    async def take(self, until: float) -> list[Item]:
        """Wait for an event, and take all that have queued up.

        TimePassed is the last where ``until``, in trio's time, has come.
        """
        batch: list[Item] = []
        with trio.move_on_at(until):
            batch.append(await self._receive.receive())
        batch += self.queued()
        if not batch or until <= trio.current_time():
            batch.append((ev.TimePassed(), None))
        return batch

    def queued(self) -> list[Item]:
        """Take all that have queued up."""
        batch = []
        with suppress(trio.WouldBlock):
            while True:
                batch.append(self._receive.receive_nowait())
        return batch
