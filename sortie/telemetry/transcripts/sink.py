"""The sink that collects what runs say until somebody writes it.

Rule 1: a run has a transcript from RunStarted to RunFinished; one of an earlier life gets one more
entry, which says that it was interrupted. Facts about any other run are ignored.
Rule 2: taking a fact costs the same however much text is in it: nothing looks at the text here.
Rule 3: what waits is bounded, for each run and for all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import trio

from sortie.dataclass import dataclass
from sortie.model import RunId
from sortie.telemetry import facts
from sortie.telemetry.facts import Fact, RunFact
from sortie.telemetry.transcripts.entries import Entry, Kind
from sortie.telemetry.transcripts.pending import Pending, bounded
from sortie.telemetry.transcripts.words import said

_ABOUT_RUNS = (RunFact, facts.HookCompleted)

WAITING_LIMIT = 16 << 20
"""Characters of all runs that wait at the most, in hundreds of runs that all shout at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a transcript goes on: how long its file is, and the number of the next line."""

    size: int
    line: int


@dataclass(slots=True)
class OpenTranscript:
    """A transcript that is not over, or not written to its end; ``place`` is None before it was
    looked at."""

    run_id: RunId
    place: Place | None = None
    turn: int | None = None
    pending: Pending | None = None
    over: bool = False


class TranscriptSink:
    """See the module. ``wall`` gives Unix seconds; ``news`` is set while anything waits."""

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
        if isinstance(fact, facts.AgentSpoke):  # a thousand times as many as of all others
            run = self._open.get(fact.run_id)
            if fact.text is not None and run is not None and not run.over:
                text = bounded(fact.text)
                self._add(run, Entry(self._wall(), Kind.OUTPUT, run.turn, text))
        elif self._is_kept and isinstance(fact, _ABOUT_RUNS):
            self._take(fact)

    def _take(self, fact: RunFact | facts.HookCompleted) -> None:
        if isinstance(fact, facts.RunStarted | facts.RunRecovered):
            self._open[fact.run_id] = OpenTranscript(fact.run_id)
        run = None if fact.run_id is None else self._open.get(fact.run_id)
        if run is None or run.over:
            return
        if isinstance(fact, facts.TurnBegan):
            run.turn = fact.turn
        told = said(fact)
        if told is not None:
            run.over = isinstance(fact, facts.RunFinished | facts.RunRecovered)
            kind, text = told
            self._add(run, Entry(self._wall(), kind, run.turn, bounded(text), run.over))
        if isinstance(fact, facts.TurnCompleted):
            run.turn = None

    def take(self, run_ids: Iterable[RunId] | None = None) -> list[tuple[OpenTranscript, Pending]]:
        """Return what waits, of some runs or of all, and let go of it."""
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

    def wrote(self, run: OpenTranscript, place: Place) -> None:
        """Note where a transcript goes on now; one that is over is forgotten."""
        run.place = place
        if run.over and run.pending is None:
            self._open.pop(run.run_id, None)

    def give_back(self, run: OpenTranscript, taken: Pending) -> None:
        """Have what was taken wait again, before what has come since."""
        if run.run_id not in self._open:
            return
        if run.pending is not None:
            self._waiting -= run.pending.size
            taken.take_over(run.pending)
        run.pending = taken
        self._waiting += taken.size
        self.news.set()

    def _add(self, run: OpenTranscript, entry: Entry) -> None:
        pending = run.pending
        if pending is None:
            pending = run.pending = Pending()
            self.news.set()
        if self._waiting < WAITING_LIMIT or entry.ends:
            self._waiting += pending.add(entry)
        else:
            pending.leave_out(entry)
