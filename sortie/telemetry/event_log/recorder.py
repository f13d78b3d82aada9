"""What stands between the loop and the scheduler, and collects events until they are written.

Rule 1: taking an event costs the loop the same however much is in it: nothing is encoded here.
Rule 2: a segment begins with a checkpoint: the first one, one now and then, one after each gap, and
one where the clock of the machine was set or the machine slept.
Rule 3: what waits is bounded. Where more comes, all is dropped until what waits was taken, and
that is a gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec import Struct

from sortie.scheduler import Checkpoint, Decision, Event, Scheduler
from sortie.scheduler import events as ev

SEGMENT_SECONDS = 3600.0
"""Seconds after which a segment ends: what a look at a moment has to decide over again at most."""

WAITING_LIMIT = 50_000
"""Events that wait at most, where each issue in an event counts as one more."""

GAP_PAUSE = 30.0
"""Seconds after a failure in which no segment begins: each costs a picture of the state."""

_CLOCK_SLACK = 1.0  # seconds by which the two clocks may drift apart in a segment


class SegmentStart(Struct, frozen=True):
    """The state before an event; ``at`` is Unix seconds, see SegmentHeader for ``follows``."""

    checkpoint: Checkpoint
    at: float
    now: float
    follows: bool


class HandledEvent(Struct, frozen=True):
    """An event and what was decided."""

    now: float
    event: Event
    decisions: Sequence[Decision]


class EventRecorder:
    """Has the scheduler decide, and keeps what happened; ``wall`` returns Unix seconds."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._is_kept = False
        self._waiting: list[SegmentStart | HandledEvent] = []
        self._weight = 0
        self._follows = False
        self._epoch = math.nan
        self._ends_at = -math.inf
        self._not_before = -math.inf
        self.dropped = 0

    def keep(self, *, kept: bool) -> None:
        """Collect from now on, or nothing any more."""
        if not kept:
            self._waiting, self._weight, self._follows = [], 0, False
            self._ends_at = -math.inf
        self._is_kept = kept

    def decide(self, scheduler: Scheduler, event: Event, now: float) -> list[Decision]:
        """Have the scheduler handle an event."""
        if not (self._is_kept and self._has_segment(scheduler, now)):
            return scheduler.handle(event, now)
        decisions = scheduler.handle(event, now)
        self._add(HandledEvent(now, event, decisions))
        if self._weight > WAITING_LIMIT:
            self.break_off(-math.inf)
        return decisions

    def waiting(self) -> Sequence[SegmentStart | HandledEvent]:
        """Return what waits."""
        return tuple(self._waiting)

    def taken(self, items: Sequence[SegmentStart | HandledEvent]) -> None:
        """Forget what waited, once it is written or cannot be."""
        if items and self._waiting and self._waiting[0] is items[0]:  # else it was switched off
            del self._waiting[: len(items)]
        self._weight = sum(map(_weight, self._waiting))

    def end_segment(self) -> None:
        """Begin another segment with the next event."""
        self._ends_at = -math.inf

    def break_off(self, not_before: float) -> None:
        """Leave a gap: what comes next belongs to another segment, begun at this time or later."""
        self._follows, self._ends_at, self._not_before = False, -math.inf, not_before

    def _add(self, item: SegmentStart | HandledEvent) -> None:
        self._waiting.append(item)
        self._weight += _weight(item)

    def _has_segment(self, scheduler: Scheduler, now: float) -> bool:
        """Begin a segment where one is due; tell whether the next event has one."""
        at = self._wall()
        if now < self._ends_at and abs(at - now - self._epoch) < _CLOCK_SLACK:
            return True
        if now < self._not_before or self._weight > WAITING_LIMIT:
            self.dropped += 1
            return False
        self._epoch, self._ends_at = at - now, now + SEGMENT_SECONDS
        self._add(SegmentStart(scheduler.checkpoint(), at, now, self._follows))
        self._follows = True
        return True


def _weight(item: SegmentStart | HandledEvent) -> int:
    """Return for how many events something counts."""
    if isinstance(item, SegmentStart):
        return 1 + len(item.checkpoint.candidates) + len(item.checkpoint.claims)
    if isinstance(item.event, ev.CandidatesFetched | ev.IssuesRefreshed):
        return 1 + len(item.event.issues)
    return 1
