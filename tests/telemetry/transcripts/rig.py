"""A sink and a writer over a real directory, and what they have written."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio
from msgspec.structs import replace

from sortie.facts import Fact
from sortie.model import RunId
from sortie.telemetry import facts
from sortie.telemetry.transcripts import Kind, TranscriptLine, read_page
from sortie.telemetry.transcripts.sink import TranscriptSink
from sortie.telemetry.transcripts.writer import TranscriptLimits, TranscriptWriter
from tests.telemetry.samples import RUN, RUN_FINISHED, RUN_STARTED

LIMITS = TranscriptLimits(keep_days=30, max_bytes=1 << 30)


@dataclass
class Rig:
    """Transcripts below ``root``; ``now`` is the wall clock, ``told`` what was published."""

    root: Path
    limits: TranscriptLimits = LIMITS
    secrets: frozenset[str] = frozenset()
    now: float = 1_700_000_000.0
    told: list[Fact] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.path = self.root / ".sortie.db.transcripts"
        self.sink = TranscriptSink(lambda: self.now)
        self.writer = TranscriptWriter(
            str(self.path), self.sink, self.told.append, lambda: self.now
        )
        self.use(self.limits)
        self.writer.hide(self.secrets)

    def use(self, limits: TranscriptLimits) -> None:
        self.writer.use(limits)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have the writer run; its end is that of a daemon."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.writer.run)
            yield
            nursery.cancel_scope.cancel()

    def begin(self, run_id: RunId = RUN) -> None:
        self.sink(replace(RUN_STARTED, run_id=run_id))

    def say(self, text: str, run_id: RunId = RUN) -> None:
        self.sink(facts.AgentSpoke(run_id=run_id, agent="x", lines=1, message="", text=text))

    def end(self, run_id: RunId = RUN) -> None:
        self.sink(replace(RUN_FINISHED, run_id=run_id))

    def file(self, run_id: RunId = RUN) -> Path:
        return self.path / f"{run_id}.jsonl.gz"

    def lines(self, run_id: RunId = RUN) -> list[TranscriptLine]:
        """Return all lines that were written, read in pages."""
        found: list[TranscriptLine] = []
        while True:
            page = read_page(str(self.path), run_id, found[-1].number if found else 0, 7)
            found += page.lines
            if not page.more:
                return found

    def texts(self, kind: Kind, run_id: RunId = RUN) -> list[str]:
        return [line.text for line in self.lines(run_id) if line.kind is kind]


def every_byte(root: Path) -> bytes:
    """Return all that stands in a file or in those below a directory, packed and unpacked."""
    found = b""
    for path in (root, *sorted(root.rglob("*"))):
        if path.is_file():
            content = path.read_bytes()
            found += path.name.encode() + content
            found += b"".join(unpacked(content))
    return found


def unpacked(content: bytes) -> Iterator[bytes]:
    """Return what is in the gzip members of a file, as another program would unpack them."""
    while content:
        unpacker = zlib.decompressobj(31)
        try:
            yield unpacker.decompress(content)
        except zlib.error:
            return
        content = unpacker.unused_data
