"""Days that are recorded as the event log would have them, and decided over again."""

from __future__ import annotations

from itertools import zip_longest
from random import Random

from sortie.scheduler import Decision, Event, Scheduler
from sortie.telemetry.event_log.entries import (
    IssueDigests,
    SegmentEncoder,
    decoded_checkpoint,
    decoded_entries,
    decoded_header,
)
from sortie.telemetry.event_log.replay import Replay


class RecordedLife:
    """What a life of the scheduler was told and decided, in segments that begin at any event."""

    def __init__(self, seed: int) -> None:
        self._dice = Random(f"segments of {seed}")
        self._issues = IssueDigests()
        self._encoder = SegmentEncoder(self._issues)
        self._segments: list[list[bytes]] = []

    def decide(self, scheduler: Scheduler, event: Event, now: float) -> list[Decision]:
        """Have the scheduler handle an event, and record that."""
        if not self._segments or self._dice.random() < 0.01:
            self._begin(scheduler, now)
        decisions = scheduler.handle(event, now)
        self._segments[-1].append(self._encoder.entry(now, event, decisions))
        return decisions

    def _begin(self, scheduler: Scheduler, now: float) -> None:
        self._encoder = SegmentEncoder(self._issues)
        header = self._encoder.header(
            scheduler.checkpoint(), version="1", at=now, now=now, follows=True
        )
        self._segments.append([header])

    def assert_replayed(self, scheduler: Scheduler, now: float) -> None:
        """Have every segment decided over again: it ends as the next one begins."""
        self._begin(scheduler, now)
        differs = self.replayed_otherwise()
        self._segments.pop()
        assert differs is None, differs

    def replayed_otherwise(self) -> str | None:
        """Decide over again, and return what was other then; None where nothing was."""
        for segment, following in zip_longest(self._segments, self._segments[1:]):
            replay = Replay(decoded_header(segment[0]))
            for incident in decoded_entries(iter(segment[1:])):
                replay.tell(incident)
                if replay.differs_at is not None:
                    return f"{incident}"
            if following is None:
                return None
            header = SegmentEncoder(self._issues).header(
                replay.scheduler.checkpoint(), version="1", at=0.0, now=0.0, follows=True
            )
            ends, begins = map(decoded_header, (header, following[0]))
            if decoded_checkpoint(ends) != decoded_checkpoint(begins):
                return f"the state before segment of {begins.now}"
        return None
