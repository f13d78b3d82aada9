"""A scheduler, a recorder and a writer over a real directory, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from sortie.facts import Fact
from sortie.scheduler import Decision, Event
from sortie.telemetry.event_log import EventLogLimits, EventLogWriter, EventRecorder, Past, past_at
from sortie.telemetry.event_log.reader import read_segment, stored_segments
from tests.scheduler.driver import EPOCH, Driver

LIMITS = EventLogLimits(keep_days=7, max_bytes=1 << 30)


class Rig(Driver):
    """A driver whose scheduler is recorded below ``root``; ``told`` is what was published.

    ``clock_set`` is by how much somebody has set the clock of the machine.
    """

    def __init__(self, root: Path, limits: EventLogLimits = LIMITS) -> None:
        super().__init__()
        self.clock_set = 0.0
        self.told: list[Fact] = []
        self.path = str(root / ".sortie.db.events")
        self.recorder = EventRecorder(self.wall)
        self.writer = EventLogWriter(self.path, self.recorder, self.told.append, self.wall)
        self.writer.use(limits)

    def wall(self) -> float:
        """Return Unix seconds."""
        return EPOCH + self.clock_set + self.now

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have the writer run; its end is that of a daemon."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.writer.run)
            yield
            nursery.cancel_scope.cancel()

    async def sleep(self, seconds: float) -> None:
        """Let time pass for the scheduler, as it asks for, and for the writer."""
        until = self.now + seconds
        while (at := max(self.now, min(self.scheduler.wakeup_at(), until))) < until:
            await trio.sleep(at - self.now)
            self.pass_time(at - self.now)
        await trio.sleep(until - self.now)
        self.pass_time(until - self.now)

    def tell(self, event: Event) -> list[Decision]:
        """Give the scheduler one event, as the loop does."""
        return self.recorder.decide(self.scheduler, event, self.now)

    def past(self, seconds: float, *, alive: bool = False) -> Past:
        """Return the scheduler as it was so many seconds after the beginning."""
        return past_at(self.path, EPOCH + seconds, alive=alive)

    def detail(self, seconds: float, name: str = "A") -> str:
        """Return how an issue stood."""
        past = self.past(seconds)
        found = past.replay.scheduler.explain_issue(name, past.now)
        assert past.replay.differs_at is None
        return found if isinstance(found, str) else found.detail

    def segments(self) -> list[int]:
        """Return how many events each segment holds."""
        return [
            len(list(read_segment(self.path, file).incidents()))
            for file in stored_segments(self.path)
        ]
