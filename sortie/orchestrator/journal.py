"""The journal: decisions that are not performed yet, because a record before them is not on disk.

Rule 1: a record is on disk before any later decision is performed.
Rule 2: every decision is performed once, in the order of the decisions.
Rule 3: while the disk fails, no decision is lost and no run is started. Stopping a run and asking
the tracker need no record and go on.
Rule 4: a record on which no decision waits is committed COMMIT_DELAY later at most, together with
the records that come meanwhile.
Rule 5: one commit is under way at a time. While it takes long the loop goes on without it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

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

COMMIT_PATIENCE = 0.2
"""Seconds for which a commit is waited for. One that takes longer, as where a server does not
answer, wakes the loop when it has ended."""

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


class _Commit:
    """A try to write ``records`` since ``began_at``; none: to see that they could be written.
    ``error`` is known once ``ended`` is set."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.began_at = trio.current_time()
        self.ended = trio.Event()
        self.error: StoreError | None = None
        self.is_late = False


class Journal:
    """Decisions in order. ``error`` says why records cannot be written, None where they can.

    ``wake`` is called when a commit has ended that was not waited for: ``write`` is due then.
    """

    def __init__(
        self,
        store: Store,
        wall: Callable[[], float],
        publish: Publish,
        wake: Callable[[], object],
    ) -> None:
        self._store = store
        self._wall = wall
        self._publish = publish
        self._wake = wake
        # Unbounded on purpose: while the disk fails nothing starts, so what can pile up is what
        # the runs under way report until they end.
        self._waiting: deque[Decision | Flushed] = deque()
        self._written = 0  # so many records of what waits are on disk, the first ones
        self._commit: _Commit | None = None
        self._again_at = 0.0
        self._due_at = math.inf
        self._patience = COMMIT_PATIENCE
        self.error: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether everything was performed."""
        return not self._waiting

    @property
    def committing_since(self) -> float:
        """When the commit under way began, in trio's time; inf where none is."""
        return math.inf if self._commit is None else self._commit.began_at

    @property
    def again_at(self) -> float:
        """When ``write`` is due, in trio's time; inf where nothing waits and the disk works, and
        while a commit is under way."""
        if self._commit is not None:
            return -math.inf if self._commit.ended.is_set() else math.inf
        return self._due_at if self.error is None else self._again_at

    def hurry(self) -> None:
        """Let the next ``write`` try at once, even shortly after a failure, and wait for the end
        of a commit however long it takes."""
        self._again_at = 0.0
        self._patience = math.inf
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

    async def write(self, nursery: trio.Nursery) -> bool:
        """Write all records that wait; return whether nothing that waits lacks its record.

        Before ``again_at`` nothing is written. A commit that takes longer than COMMIT_PATIENCE goes
        on in ``nursery``. Raises RecordRefused for a record that no try can write.
        """
        if trio.current_time() < self.again_at and self._patience < math.inf:
            return self.is_empty
        while (commit := self._commit or self._next_commit()) is not None:
            if commit is not self._commit:
                self._commit = commit
                nursery.start_soon(self._make, commit)
            with trio.move_on_after(self._patience):
                await commit.ended.wait()
            if not commit.ended.is_set():
                commit.is_late = True
                return False
            self._commit = None
            if not self._has_worked(commit):
                return False
        self._due_at = math.inf
        return True

    def _next_commit(self) -> _Commit | None:
        """Return what is to be written now, None where that is nothing and the disk works."""
        records = [record for item in self._waiting for record in _records_of(item)]
        unwritten = records[self._written :]
        return _Commit(unwritten) if unwritten or self.error is not None else None

    async def _make(self, commit: _Commit) -> None:
        try:
            if commit.records:
                await self._store.commit(commit.records, self._wall())
            else:
                await self._store.check()
        except StoreError as exc:
            commit.error = exc
        commit.ended.set()
        if commit.is_late:
            self._wake()

    def _has_worked(self, commit: _Commit) -> bool:
        """Note how a commit has ended. Raises RecordRefused."""
        if isinstance(commit.error, RecordRefused):
            raise commit.error
        if commit.error is not None:
            self.error = str(commit.error)
            self._again_at = trio.current_time() + COMMIT_PAUSE
            self._publish(facts.StoreFailed(error=self.error))
            return False
        self._written += len(commit.records)
        if self.error is not None:
            self.error = None
            self._publish(facts.StoreRecovered())
        return True

    def take(self) -> Iterator[Decision | Flushed]:
        """Take everything out, in order; call it only after ``write`` returned True."""
        self._written = 0
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
        case do.PostComment() | do.PostAgentComment() | do.PostQuestion():
            return (record_of(item),)
        case _ if isinstance(item, Record):
            return (item,)
        case _:
            return ()
