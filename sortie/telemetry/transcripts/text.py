"""A transcript's line as people read it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC

from sortie.telemetry.transcripts.entries import TranscriptLine


def as_text(line: TranscriptLine, visible: Callable[[str], str] = str) -> str:
    """Return time, turn, kind and text; ``visible`` makes the text harmless where it is shown."""
    at = line.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    turn = "-" if line.turn is None else str(line.turn)
    return f"{at} {turn:>3} {line.kind.value:<10} {visible(line.text)}".rstrip()
