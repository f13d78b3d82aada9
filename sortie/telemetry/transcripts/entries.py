"""What a transcript is made of: entries of one or more lines, and how they are written down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from enum import StrEnum

from sortie.dataclass import dataclass

_encode = json.JSONEncoder(ensure_ascii=False).encode


class Kind(StrEnum):
    """What a line of a transcript tells."""

    OUTPUT = "output"
    STDERR = "stderr"
    TOOL = "tool"
    PERMISSION = "permission"
    HOOK = "hook"
    TURN = "turn"
    RUN = "run"
    GAP = "gap"


@dataclass(frozen=True, slots=True)
class Entry:
    """Lines that were told at once, parted by line feeds; ``at`` is Unix seconds.

    ``ends``: nothing follows in this transcript.
    """

    at: float
    kind: Kind
    turn: int | None
    text: str
    ends: bool = False

    @property
    def lines(self) -> int:
        """How many lines these are."""
        return self.text.count("\n") + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptLine:
    """One line: its number, which only ever rises, when it came, and in which turn."""

    number: int
    at: datetime
    turn: int | None
    kind: Kind
    text: str


def encoded(entry: Entry, number: int) -> bytes:
    """Return an entry as a line of JSON; ``number`` is that of its first line."""
    # Put together by hand, since to encode the text alone costs a quarter of encoding it all.
    turn = "null" if entry.turn is None else entry.turn
    head = f'{{"line":{number},"at":{entry.at:.3f},"turn":{turn},"kind":"{entry.kind.value}"'
    return f'{head},"text":{_encode(entry.text)}}}\n'.encode()


def decoded(payload: bytes) -> Iterator[TranscriptLine]:
    """Return the lines of entries that were encoded. Raises ValueError for anything else."""
    for record in payload.splitlines():
        try:
            document = json.loads(record)
            at = datetime.fromtimestamp(document["at"], UTC)
            kind, turn = Kind(document["kind"]), document["turn"]
            first, texts = int(document["line"]), document["text"].split("\n")
        except (KeyError, TypeError, AttributeError, OverflowError, OSError) as error:
            raise ValueError("no entry of a transcript") from error
        for number, text in enumerate(texts, first):
            yield TranscriptLine(number=number, at=at, turn=turn, kind=kind, text=text)


def as_text(line: TranscriptLine, visible: Callable[[str], str] = str) -> str:
    """Return time, turn, kind and text; ``visible`` makes the text harmless where it is shown."""
    at = line.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    turn = "-" if line.turn is None else str(line.turn)
    return f"{at} {turn:>3} {line.kind.value:<10} {visible(line.text)}".rstrip()
