"""The events on their way to the loop, in the order in which they were told.

Rule: news of runs, on which nothing that the loop starts depends, wakes it PATIENCE later at most;
whatever else comes meanwhile takes it along.
"""

from __future__ import annotations

import math
from collections import deque

import trio

from sortie.scheduler import Event
from sortie.scheduler import events as ev

Item = tuple[Event, trio.Event | None]
"""An event, and what is set once everything that it led to is on disk and performed, if wanted."""

PATIENCE = 0.01
"""Seconds for which news of runs waits for other events: longer than a turn takes to end and the
next one to begin, in which most of it comes."""

_NEWS = ev.IssueMoved | ev.WorkspaceMade | ev.ProcessLaunched | ev.AgentSessionKnown | ev.AgentActed
"""Not what was used: that may stop a run, before its next turn is on record."""


class EventQueue:
    """Takes events from anybody, and gives them to the loop.

    Unbounded on purpose: producers must never block on, or drop, an exit. What agents say does not
    come through here; what does is a few events a run.
    """

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._due_at = math.inf
        self._urgent = trio.Event()
        self._sleep = trio.CancelScope()

    def tell(self, event: Event) -> None:
        """Put an event in; returns at once."""
        self._items.append((event, None))
        if not isinstance(event, _NEWS):
            self._urgent.set()
        elif self._due_at == math.inf:
            self._due_at = trio.current_time() + PATIENCE
            self._sleep.deadline = min(self._sleep.deadline, self._due_at)

    async def commit(self, event: Event) -> None:
        """Put an event in and return once what it records is on disk."""
        done = trio.Event()
        self._items.append((event, done))
        self._urgent.set()
        await done.wait()

    async def take(self, until: float) -> list[Item]:
        """Wait for an event, and take all that have queued up.

        TimePassed is the last where ``until``, in trio's time, has come.
        """
        with trio.move_on_at(min(until, self._due_at)) as self._sleep:
            await self._urgent.wait()
        batch = self.queued()
        if not batch or until <= trio.current_time():
            batch.append((ev.TimePassed(), None))
        return batch

    def queued(self) -> list[Item]:
        """Take all that have queued up."""
        batch = list(self._items)
        self._items.clear()
        self._due_at, self._urgent = math.inf, trio.Event()
        return batch
