"""What was decided and is not performed yet: records first, then what depends on them.

Rule 1: a record is on disk before anything that was decided after it is performed.
Rule 2: everything is performed once, in the order in which it was decided.
Rule 3: while the disk fails nothing is lost and nothing is started; stopping a run and asking the
tracker need no record and go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import trio

from sortie.model import StoreError
from sortie.orchestrator.comments import record_of
from sortie.scheduler import Decision, Record
from sortie.scheduler import decisions as do
from sortie.store import RecordRefused, Store
from sortie.telemetry import Publish, facts

COMMIT_PAUSE = 1.0
"""Seconds between two tries to write records that could not be written."""

Told = trio.Event
"""Set once everything decided before it is on disk and performed."""


class Journal:
    """Decisions in order. ``error`` says why records cannot be written, None where they can."""

    def __init__(self, store: Store, wall: Callable[[], float], publish: Publish) -> None:
        self._store = store
        self._wall = wall
        self._publish = publish
        # Unbounded on purpose: while the disk fails nothing starts, so what can pile up is what
        # the runs under way report until they end.
        self._waiting: deque[Decision | Told] = deque()
        self._again_at = 0.0
        self.error: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether everything was performed."""
        return not self._waiting

    @property
    def again_at(self) -> float:
        """When records are to be written again, in trio's time; inf while the disk works."""
        return float("inf") if self.error is None else self._again_at

    def hurry(self) -> None:
        """Let the next ``write`` try, however short ago the last one failed."""
        self._again_at = 0.0

    def add(self, items: Iterable[Decision | Told]) -> None:
        """Queue decisions."""
        self._waiting.extend(items)

    async def write(self) -> bool:
        """Write all records that wait; return whether nothing that waits lacks its record.

        A try that failed is not repeated before ``again_at``. Raises RecordRefused for a record
        that no try can write.
        """
        records = [record for item in self._waiting for record in _records_of(item)]
        if self.error is not None and trio.current_time() < self._again_at:
            return False
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
        if self.error is not None:
            self.error = None
            self._publish(facts.StoreRecovered())
        return True

    def take(self) -> Iterator[Decision | Told]:
        """Take everything out, in order; call it only after ``write`` returned True."""
        while self._waiting:
            yield self._waiting.popleft()

    def take_urgent(self, is_urgent: Callable[[Decision], bool]) -> list[Decision]:
        """Take out the decisions that depend on no record."""
        urgent = [d for d in self._waiting if not isinstance(d, trio.Event) and is_urgent(d)]
        taken = set(map(id, urgent))
        self._waiting = deque(d for d in self._waiting if id(d) not in taken)
        return urgent


def _records_of(item: Decision | Told) -> tuple[Record, ...]:
    """Return what has to be on disk before an item is performed, itself or what it comes to."""
    match item:
        case do.PostComment():
            return (record_of(item),)
        case _ if isinstance(item, Record):
            return (item,)
        case _:
            return ()
