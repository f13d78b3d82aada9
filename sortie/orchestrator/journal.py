"""What was decided and is not performed yet: records first, then what depends on them.

Rule 1: a record is on disk before anything that was decided after it is performed.
Rule 2: everything is performed once, in the order in which it was decided.
Rule 3: while the disk fails nothing is lost and nothing is started; stopping a run and asking the
tracker need no record and go on.
Rule 4: news of runs that nothing waits for is on disk PATIENCE later at most, in one commit with
whatever else comes meanwhile.
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

PATIENCE = 0.02
"""Seconds for which records that nothing waits for wait for others: as long as some commits take,
and longer than a busy daemon is without one."""

_PATIENT = (
    rec.RecordWorkspace
    | rec.RecordProcess
    | rec.RecordSession
    | rec.RecordSpending
    | rec.RecordActivity
    | rec.RecordHandoff
    | rec.ForgetRetry
)
"""What follows from something that has happened already, and that a crash may undo: the next life
finds the process, moves the issue again to where it is, and counts on."""

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
        """Let the next ``write`` try, however short ago the last one failed."""
        self._again_at = 0.0
        self.wait_no_longer()

    def wait_no_longer(self) -> None:
        """Let the next ``write`` wait for no further records, if the disk works."""
        self._due_at = -math.inf

    def add(self, items: Iterable[Decision | Told]) -> None:
        """Queue decisions."""
        for item in items:
            self._waiting.append(item)
            patience = PATIENCE if isinstance(item, _PATIENT) else 0.0
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
