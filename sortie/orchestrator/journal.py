"""The journal: decisions that are not performed yet, because a record before them is not on disk.

Rule 1: a record is on disk before any later decision is performed.
Rule 2: every decision is performed once, in the order of the decisions.
Rule 3: while the disk fails, no decision is lost and no run is started. Stopping a run and asking
the tracker need no record and go on.
Rule 4: a record on which no decision waits is committed COMMIT_DELAY later at most, together with
the records that come meanwhile.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import trio

from sortie.model import StoreError
from sortie.orchestrator.comments import record_of
from sortie.scheduler import Decision, Record
from sortie.scheduler import decisions as do
from sortie.scheduler import records as rec
from sortie.store import RecordRefused, Store
from sortie.telemetry import Publish, facts

COMMIT_PAUSE = 1.0
"""Seconds between two tries to write records that could not be written."""

COMMIT_DELAY = 0.02
"""Seconds for which a record that nothing waits for is delayed: one commit then takes several."""

_DELAYED = (
    rec.RecordWorkspace
    | rec.RecordProcess
    | rec.RecordSession
    | rec.RecordImage
    | rec.RecordSpending
    | rec.RecordActivity
    | rec.RecordHandoff
    | rec.ForgetRetry
)
"""Records that a crash may lose: the next start finds the process itself, and moves the issue to
the state in which it is already."""

Flushed = trio.Event
"""Set once everything decided before it is on disk and performed."""


class Journal:
    """Decisions in order. ``error`` says why records cannot be written, None where they can."""

    def __init__(self, store: Store, wall: Callable[[], float], publish: Publish) -> None:
        self._store = store
        self._wall = wall
        self._publish = publish
        # Unbounded on purpose: while the disk fails nothing starts, so what can pile up is what
        # the runs under way report until they end.
        self._waiting: deque[Decision | Flushed] = deque()
        self._again_at = 0.0
        self._due_at = math.inf
        self.error: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether everything was performed."""
        return not self._waiting

    @property
    def again_at(self) -> float:
        """When ``write`` is due, in trio's time; inf where nothing waits and the disk works."""
        return self._due_at if self.error is None else self._again_at

    def hurry(self) -> None:
        """Let the next ``write`` try at once, even shortly after a failure."""
        self._again_at = 0.0
        self.wait_no_longer()

    def wait_no_longer(self) -> None:
        """Let the next ``write`` commit without waiting for further records."""
        self._due_at = -math.inf

    def add(self, items: Iterable[Decision | Flushed]) -> None:
        """Queue decisions."""
        for item in items:
            self._waiting.append(item)
            patience = COMMIT_DELAY if isinstance(item, _DELAYED) else 0.0
            self._due_at = min(self._due_at, trio.current_time() + patience)

    async def write(self) -> bool:
        """Write all records that wait; return whether nothing that waits lacks its record.

        Before ``again_at`` nothing is written. Raises RecordRefused for a record
        that no try can write.
        """
        if trio.current_time() < self.again_at:
            return self.is_empty
        records = [record for item in self._waiting for record in _records_of(item)]
        try:
            if records:
                await self._store.commit(records, self._wall())
            elif self.error is not None:
                await self._store.check()
        except RecordRefused:
            raise
        except StoreError as exc:
            self.error = str(exc)
            self._again_at = trio.current_time() + COMMIT_PAUSE
            self._publish(facts.StoreFailed(error=self.error))
            return False
        self._due_at = math.inf
        if self.error is not None:
            self.error = None
            self._publish(facts.StoreRecovered())
        return True

    def take(self) -> Iterator[Decision | Flushed]:
        """Take everything out, in order; call it only after ``write`` returned True."""
        while self._waiting:
            yield self._waiting.popleft()

    def take_urgent(self, is_urgent: Callable[[Decision], bool]) -> list[Decision]:
        """Take out the decisions that depend on no record."""
        urgent = [d for d in self._waiting if not isinstance(d, trio.Event) and is_urgent(d)]
        taken = set(map(id, urgent))
        self._waiting = deque(d for d in self._waiting if id(d) not in taken)
        return urgent


def _records_of(item: Decision | Flushed) -> tuple[Record, ...]:
    """Return the records that must be on disk before an item is performed."""
    match item:
        case do.PostComment():
            return (record_of(item),)
        case _ if isinstance(item, Record):
            return (item,)
        case _:
            return ()
