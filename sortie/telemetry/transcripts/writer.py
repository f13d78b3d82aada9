"""The task that keeps transcripts: it writes what was collected, and forgets what is old.

Rule 1: one thread at a time: the lines of a run stay in order, and no file is deleted while it is
written.
Rule 2: after a pass the task sleeps many times as long as the pass took: with a thousand runs that
talk it writes less often, not more.
Rule 3: a failure here harms no run; it is published, and the pass is tried again.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Collection, Sequence

import trio
from msgspec import Struct

from sortie.model import RunId
from sortie.resources import Shortage, run_in_thread, shortage_behind
from sortie.telemetry import Publish, facts
from sortie.telemetry.private_directory import Forgotten, forget
from sortie.telemetry.transcripts.files import OURS, name_of
from sortie.telemetry.transcripts.reader import TranscriptPage, read_last, read_page
from sortie.telemetry.transcripts.sink import TranscriptSink
from sortie.telemetry.transcripts.writing import Unwritten, Written, cleaner, write

SHORTEST_SLEEP, LONGEST_SLEEP = 2.0, 10.0
"""Seconds from one pass to the next: a hundred times as long as it took, within these."""

LAST_PASS_SECONDS = 5.0
"""Seconds that the last pass may take when the daemon ends."""

FORGET_PERIOD = 3600.0
"""Seconds between two searches for old transcripts; a changed setting takes effect by then."""

_SLEEP_RATIO = 100
_SECONDS_OF_DAY = 86_400.0


class TranscriptLimits(Struct, frozen=True, kw_only=True):
    """How long transcripts are kept, 0 days for ever, and how large all may be, 0 for none."""

    keep_days: int
    max_bytes: int


class TranscriptWriter:
    """Writes the transcripts of a sink into a directory; ``error`` is why it cannot just now."""

    def __init__(
        self,
        path: str,
        sink: TranscriptSink,
        publish: Publish,
        wall: Callable[[], float],
    ) -> None:
        self.error: str | None = None
        self._path = path
        self._sink = sink
        self._publish = publish
        self._wall = wall
        self._limits = TranscriptLimits(keep_days=0, max_bytes=0)
        self._clean = cleaner(())
        self._one_pass = trio.Lock()
        self._stored = 0
        self._is_last_pass = False

    def use(self, limits: TranscriptLimits) -> None:
        """Use these limits."""
        self._limits = limits
        self._sink.keep(kept=limits.max_bytes > 0)

    def hide(self, secrets: Collection[str]) -> None:
        """Hide these secrets, and no others, in what is written from now on."""
        self._clean = cleaner(secrets)

    async def run(self) -> None:
        """Write, and forget old transcripts, until cancelled; then write what is left."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._forget_now_and_then)
                while True:
                    await self._sink.news.wait()
                    began = trio.current_time()
                    await self._write(None)
                    sleep = (
                        _SLEEP_RATIO * (trio.current_time() - began) if not self.error else math.inf
                    )
                    await trio.sleep(min(max(SHORTEST_SLEEP, sleep), LONGEST_SLEEP))
        finally:
            self._is_last_pass = True
            with trio.move_on_after(LAST_PASS_SECONDS, shield=True):
                await self._write(None)

    async def page(self, run_id: RunId, after: int, limit: int) -> TranscriptPage:
        """Return lines of a transcript, those of this moment too. Raises OSError and Shortage."""
        await self._write([run_id])
        return await run_in_thread(read_page, self._path, run_id, after, limit)

    async def last(self, run_id: RunId, limit: int) -> TranscriptPage:
        """Return the last lines of a transcript, ``limit`` at most; as ``page``."""
        await self._write([run_id])
        return await run_in_thread(read_last, self._path, run_id, limit)

    def is_live(self, run_id: RunId) -> bool:
        """Tell whether more may follow in a transcript."""
        return run_id in self._sink.live()

    async def _write(self, run_ids: Collection[RunId] | None) -> None:
        async with self._one_pass:
            taken = self._sink.take(run_ids)
            if not taken:
                return
            jobs = [Unwritten(run.run_id, run.place, each.entries()) for run, each in taken]
            written = Written([None] * len(jobs), None, 0)
            try:
                written = await self._in_thread(jobs)
            finally:
                for (run, each), place in zip(taken, written.places, strict=True):
                    if place is None:
                        self._sink.give_back(run, each)
                    else:
                        self._sink.wrote(run, place)
        self._publish_result(written.error)
        self._stored += written.grown
        if self._stored > self._limits.max_bytes > 0:
            await self._forget()

    async def _in_thread(self, jobs: Sequence[Unwritten]) -> Written:
        try:
            return await run_in_thread(
                write,
                self._path,
                jobs,
                self._clean,
                self._limits.max_bytes,
                abandon_on_cancel=self._is_last_pass,
            )
        except Exception as exc:  # the edge: no run ends because of its transcript
            shortage = shortage_behind(exc)
            if shortage is None and self.error is None:
                text = traceback.format_exc()
                self._publish(facts.AdapterCrashed(where="transcripts", traceback=text))
            error = str(shortage or f"{type(exc).__name__}; the log has the traceback")
            return Written([None] * len(jobs), error, 0)

    def _publish_result(self, error: str | None) -> None:
        """Publish a failed pass, and the first one after it that did not fail."""
        if error is not None:
            self._publish(facts.TranscriptsFailed(path=self._path, error=error))
        elif self.error is not None:
            self._publish(facts.TranscriptsRecovered())
        self.error = error

    async def _forget_now_and_then(self) -> None:
        while True:
            await self._forget()
            await trio.sleep(FORGET_PERIOD)

    async def _forget(self) -> None:
        days = self._limits.keep_days
        before = self._wall() - days * _SECONDS_OF_DAY if days else -math.inf
        try:
            async with self._one_pass:
                live = frozenset(map(name_of, self._sink.live()))
                done: Forgotten = await run_in_thread(
                    forget, self._path, OURS, live, before, self._limits.max_bytes
                )
        except (OSError, Shortage, MemoryError) as exc:
            error = getattr(exc, "strerror", None) or str(exc)
            self._publish(facts.TranscriptsFailed(path=self._path, error=error))
            return
        self._stored = done.left
        if done.count:
            self._publish(facts.TranscriptsForgotten(count=done.count, bytes=done.left))
