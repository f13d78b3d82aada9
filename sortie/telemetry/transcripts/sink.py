"""The sink that collects what runs say until the writer takes it.

Rule 1: a run has a transcript from RunStarted to RunFinished; one of an earlier life gets one more
entry, which says that it was interrupted. Facts about any other run are ignored.
Rule 2: taking a fact costs the same however long its text is: the text is not looked at here.
Rule 3: what waits is bounded, for each run and for all runs together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence

import trio
from msgspec import Struct

from sortie.facts import Fact, RunFact
from sortie.model import RunId, cut
from sortie.telemetry import facts
from sortie.telemetry.transcripts.entries import Kind, TranscriptEntry, entry_of

_ABOUT_RUNS = (RunFact, facts.HookCompleted)

WAITING_LIMIT = 16 << 20
"""Characters of all runs that wait at most, even where hundreds of runs talk at once."""


PENDING_LIMIT = 2 << 20
"""Characters of one run that wait at most. Of faster output the middle is left out."""

_HALF_PENDING = PENDING_LIMIT // 2
_ENTRY_OVERHEAD = 64  # characters that each entry counts besides its text


class PendingEntries:
    """Entries of one run to be written: the first ones, a gap for dropped ones, the last ones."""

    def __init__(self) -> None:
        self._first: list[TranscriptEntry] = []
        self._last: deque[TranscriptEntry] | None = None
        self._first_size = self._last_size = self._dropped = 0

    def __len__(self) -> int:
        return len(self._first) + len(self._last or ())

    @property
    def size(self) -> int:
        """How many characters wait."""
        return self._first_size + self._last_size

    def add(self, entry: TranscriptEntry) -> int:
        """Add an entry, and return by how many characters the waiting text grew; an entry has at
        most a quarter of the limit."""
        size = len(entry.text) + _ENTRY_OVERHEAD
        if self._last is None and self._first_size + size <= _HALF_PENDING:
            self._first.append(entry)
            self._first_size += size
            return size
        if self._last is None:
            self._last = deque()
        before = self._last_size
        self._last.append(entry)
        self._last_size += size
        while self._last_size > _HALF_PENDING:
            oldest = self._last.popleft()
            self._last_size -= len(oldest.text) + _ENTRY_OVERHEAD
            self._count_dropped(oldest.lines)
        return self._last_size - before

    def drop(self, entry: TranscriptEntry) -> None:
        """Drop the entry and count its lines in the gap. Later entries follow the gap."""
        self._count_dropped(entry.lines)

    def take_over(self, later: PendingEntries) -> None:
        """Add what came later and waits elsewhere."""
        for entry in later._first:
            self.add(entry)
        if later._dropped:
            self._count_dropped(later._dropped)
        for entry in later._last or ():
            self.add(entry)

    def entries(self) -> Sequence[TranscriptEntry]:
        """Return what waits, with an entry that says how many lines were dropped."""
        last = list(self._last or ())
        if not self._dropped:
            return [*self._first, *last]
        at = (last or self._first)[0].at if len(self) else 0.0
        text = f"{self._dropped} lines are left out: they came faster than they could be written"
        return [*self._first, TranscriptEntry(at, Kind.GAP, None, text), *last]

    def _count_dropped(self, lines: int) -> None:
        if self._last is None:
            self._last = deque()
        self._dropped += lines


def bounded(text: str) -> str:
    """Shorten a text to what one entry can have, by leaving out its middle."""
    return text if len(text) <= PENDING_LIMIT // 4 else cut(text, PENDING_LIMIT // 4)


class FilePosition(Struct, frozen=True):
    """Where a transcript continues: the length of its file, and the number of the next line."""

    size: int
    line: int


class OpenTranscript(Struct):
    """A transcript that is not over, or not written to its end; ``place`` is None until its file
    was read."""

    run_id: RunId
    place: FilePosition | None = None
    turn: int | None = None
    pending: PendingEntries | None = None
    over: bool = False


class TranscriptSink:
    """Collects entries; ``wall`` gives Unix seconds, ``news`` is set while anything waits."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self.news = trio.Event()
        self._wall = wall
        self._open: dict[RunId, OpenTranscript] = {}
        self._waiting = 0
        self._is_kept = True

    def keep(self, *, kept: bool) -> None:
        """Collect from now on, or nothing any more."""
        self._is_kept = kept
        if not kept:
            self._open.clear()
            self._waiting = 0

    def live(self) -> Collection[RunId]:
        """Return the runs whose transcripts are not written to their end."""
        return self._open.keys()

    def __call__(self, fact: Fact) -> None:
        """Take what a fact says of a run."""
        if isinstance(fact, facts.AgentSpoke):  # a thousand times as many as all others
            run = self._open.get(fact.run_id)
            if fact.text is not None and run is not None and not run.over:
                text = bounded(fact.text)
                entry = TranscriptEntry(self._wall(), Kind.OUTPUT, run.turn, text, role=fact.role)
                self._add(run, entry)
        elif self._is_kept and isinstance(fact, _ABOUT_RUNS):
            self._take(fact)

    def _take(self, fact: RunFact | facts.HookCompleted) -> None:
        if isinstance(fact, facts.RunStarted | facts.RunRecovered):
            self._open[fact.run_id] = OpenTranscript(fact.run_id)
        run = None if fact.run_id is None else self._open.get(fact.run_id)
        if run is None or run.over:
            return
        if isinstance(fact, facts.TurnBegan | facts.RunTakenOver):
            run.turn = fact.turn
        entry = entry_of(fact)
        if entry is not None:
            run.over = isinstance(fact, facts.RunFinished | facts.RunRecovered)
            kind, text = entry
            role = fact.role if isinstance(fact, RunFact) else None
            whole = bounded(text)
            self._add(run, TranscriptEntry(self._wall(), kind, run.turn, whole, run.over, role))
        if isinstance(fact, facts.TurnCompleted):
            run.turn = None

    def take(
        self, run_ids: Iterable[RunId] | None = None
    ) -> list[tuple[OpenTranscript, PendingEntries]]:
        """Return what waits of some runs, or of all, and forget it."""
        runs = self._open.values() if run_ids is None else map(self._open.get, run_ids)
        taken = []
        for run in runs:
            if run is not None and run.pending is not None:
                taken.append((run, run.pending))
                self._waiting -= run.pending.size
                run.pending = None
        if run_ids is None:
            self.news = trio.Event()
        return taken

    def wrote(self, run: OpenTranscript, place: FilePosition) -> None:
        """Note where a transcript continues now; one that is over is forgotten."""
        run.place = place
        if run.over and run.pending is None:
            self._open.pop(run.run_id, None)

    def give_back(self, run: OpenTranscript, taken: PendingEntries) -> None:
        """Let what was taken wait again, before what has come since."""
        if run.run_id not in self._open:
            return
        if run.pending is not None:
            self._waiting -= run.pending.size
            taken.take_over(run.pending)
        run.pending = taken
        self._waiting += taken.size
        self.news.set()

    def _add(self, run: OpenTranscript, entry: TranscriptEntry) -> None:
        pending = run.pending
        if pending is None:
            pending = run.pending = PendingEntries()
            self.news.set()
        if self._waiting < WAITING_LIMIT or entry.ends:
            self._waiting += pending.add(entry)
        else:
            pending.drop(entry)
