"""The task that writes the event log, and forgets old segments.

Rule 1: one thread at a time encodes and writes; the loop never waits for it.
Rule 2: a failure here harms no run: it is published, what could not be written is a gap, and a new
segment begins a while later.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Sequence

import trio
from msgspec import Struct

from sortie import __version__
from sortie.resources import run_in_thread, shortage_behind
from sortie.telemetry import Publish, facts
from sortie.telemetry.event_log.entries import IssueDigests, SegmentEncoder
from sortie.telemetry.event_log.recorder import GAP_PAUSE, EventRecorder, HandledEvent, SegmentStart
from sortie.telemetry.event_log.segments import OURS, SegmentFile, name_of
from sortie.telemetry.private_directory import (
    Forgotten,
    PrivateDirectory,
    forget,
    opened,
    words_of,
)

WRITE_PERIOD = 5.0
"""Seconds from one pass to the next: what a crash of the daemon loses."""

LAST_PASS_SECONDS = 5.0
"""Seconds that the last pass may take when the daemon ends."""

LARGEST_SEGMENT, SMALLEST_SEGMENT = 16 << 20, 64 * 1024
"""Bytes after which a segment ends: a sixteenth of all that may be kept, within these."""

_SEGMENTS_IN_LOG = 16
_SECONDS_OF_DAY = 86_400.0


class EventLogLimits(Struct, frozen=True, kw_only=True):
    """How many days segments are kept, 0 for none, and how many bytes of them."""

    keep_days: int
    max_bytes: int

    @property
    def is_kept(self) -> bool:
        """Whether there is an event log."""
        return self.keep_days > 0 and self.max_bytes > 0


class EventLogWriter:
    """Writes what a recorder collects; ``error`` is why it cannot just now."""

    def __init__(
        self, path: str, recorder: EventRecorder, publish: Publish, wall: Callable[[], float]
    ) -> None:
        self.error: str | None = None
        self._path = path
        self._recorder = recorder
        self._publish = publish
        self._wall = wall
        self._limits = EventLogLimits(keep_days=0, max_bytes=0)
        self._issues = IssueDigests()
        self._file: SegmentFile | None = None
        self._encoder = SegmentEncoder(self._issues)
        self._is_last_pass = False
        self._forget_at = -math.inf

    def use(self, limits: EventLogLimits) -> None:
        """Use these limits."""
        self._limits, self._forget_at = limits, -math.inf
        self._recorder.keep(kept=limits.is_kept)

    async def run(self) -> None:
        """Write, and forget what is old, until cancelled; then write what is left."""
        try:
            while True:
                await self._pass()
                await trio.sleep(WRITE_PERIOD)
        finally:
            self._is_last_pass = True
            with trio.move_on_after(LAST_PASS_SECONDS, shield=True):
                await self._pass()

    async def _pass(self) -> None:
        now = trio.current_time()
        items, dropped = self._recorder.waiting(), self._recorder.dropped
        self._recorder.dropped = 0
        if dropped:
            self._publish(facts.EventLogGap(events=dropped))
        error: str | None = None
        try:
            ends = self._is_last_pass or not self._limits.is_kept
            if items or (ends and self._file is not None):
                await run_in_thread(self._write, items, ends, abandon_on_cancel=self._is_last_pass)
            if self._forget_at <= now:
                await self._forget(now)
        except OSError as exc:
            error = words_of(exc)
        except Exception as exc:  # the edge: no run ends because of its events
            shortage = shortage_behind(exc)
            if shortage is None and self.error is None:
                text = traceback.format_exc()
                self._publish(facts.AdapterCrashed(where="event log", traceback=text))
            error = str(shortage or f"{type(exc).__name__}; the log has the traceback")
        self._recorder.taken(items)
        if error is not None:
            self._file = None
            self._recorder.break_off(now + GAP_PAUSE)
            self._recorder.dropped += sum(isinstance(item, HandledEvent) for item in items)
            self._publish(facts.EventLogFailed(path=self._path, error=error))
        elif self.error is not None and self._file is not None:
            self._publish(facts.EventLogRecovered())
        if error is not None or self._file is not None or not self._limits.is_kept:
            self.error = error

    def _write(self, items: Sequence[SegmentStart | HandledEvent], ends: bool) -> None:
        """Encode and append. Blocks. Raises OSError, and others where something has no encoding."""
        with opened(self._path, make=True) as directory:
            directory.require_room()
            for item in items:
                if isinstance(item, SegmentStart):
                    self._end(directory)
                    self._begin(item)
                elif self._file is not None:
                    self._file.add(self._encoder.entry(item.now, item.event, item.decisions))
            if ends:
                self._end(directory)
            elif self._file is not None:
                self._file.write(directory)
                if self._file.size > self._segment_bytes():
                    self._recorder.end_segment()

    def _begin(self, start: SegmentStart) -> None:
        self._file, self._encoder = SegmentFile(name_of(start.at)), SegmentEncoder(self._issues)
        header = self._encoder.header(
            start.checkpoint,
            version=__version__,
            at=start.at,
            now=start.now,
            follows=start.follows,
        )
        self._file.add(header)
        self._forget_at = -math.inf

    def _end(self, directory: PrivateDirectory) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.write(directory, ends=True)

    def _segment_bytes(self) -> int:
        share = self._limits.max_bytes // _SEGMENTS_IN_LOG
        return min(max(SMALLEST_SEGMENT, share), LARGEST_SEGMENT)

    async def _forget(self, now: float) -> None:
        """Delete what is too old, and all where nothing is kept. Raises OSError and Shortage."""
        self._forget_at = now + _SECONDS_OF_DAY / 24
        limits, live = self._limits, set() if self._file is None else {self._file.name}
        before = self._wall() - limits.keep_days * _SECONDS_OF_DAY
        most = limits.max_bytes if limits.is_kept else 0
        done: Forgotten = await run_in_thread(forget, self._path, OURS, live, before, most)
        if done.count:
            self._publish(facts.EventLogForgotten(count=done.count, bytes=done.left))
