"""Transcripts in memory, for what shows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sortie.model import RunId
from sortie.telemetry.transcripts import Kind, TranscriptLine, TranscriptPage

RUN = RunId("11111111-2222-3333-4444-555555555555")
EXAMPLE = RunId("6f1f2b1e-6a0e-4f53-9f3e-0a7d2c9b8e11")
"""The run that the OpenAPI document gives as an example."""

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def some_lines(texts: Iterable[str], first: int = 1) -> tuple[TranscriptLine, ...]:
    """Return lines of output of a first turn, as they came at noon."""
    return tuple(
        TranscriptLine(number=number, at=NOON, turn=1, kind=Kind.OUTPUT, text=text)
        for number, text in enumerate(texts, first)
    )


@dataclass
class FakeTranscripts:
    """Transcripts by run; ``trouble`` is raised where there is one."""

    lines: dict[RunId, tuple[TranscriptLine, ...]] = field(default_factory=dict)
    live: set[RunId] = field(default_factory=set)
    trouble: Exception | None = None

    def is_live(self, run_id: RunId) -> bool:
        return run_id in self.live

    async def page(self, run_id: RunId, after: int, limit: int) -> TranscriptPage:
        if self.trouble is not None:
            raise self.trouble
        if run_id not in self.lines:
            raise FileNotFoundError(run_id)
        found = [line for line in self.lines[run_id] if line.number > after]
        more = len(found) > limit
        ended = not more and run_id not in self.live
        return TranscriptPage(lines=tuple(found[:limit]), more=more, ended=ended)

    async def last(self, run_id: RunId, limit: int) -> TranscriptPage:
        lines = self.lines.get(run_id, ())
        return await self.page(run_id, max(0, len(lines) - limit), limit)
