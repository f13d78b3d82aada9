"""Turn what a terminal program writes into plain lines, chunk by chunk."""

from __future__ import annotations

import re
from dataclasses import dataclass

LINE_LIMIT = 10 * 1024 * 1024
"""Bytes that a line of output may have."""

_ESCAPES = re.compile(
    r"""
    (?: \x1b\[ | \x9b ) [0-?]*+ [\ -/]*+ [@-~]?+         # CSI: colours, cursor, erasing
  | (?: \x1b[\]PX^_] | [\x90\x98\x9d-\x9f] )             # OSC, DCS, SOS, PM, APC with their text
    [^\x07\x1b\x9c\n]*+ (?: \x07 | \x1b\\ | \x9c )
  | \x1b [\ -/]*+ [0-~]?+                                # any other, or one that was cut short
  | [\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]                # control characters
    """,
    re.VERBOSE,
)
_ERASED_LINE = re.compile(r"\x1b\[[12]K")


def strip_escapes(text: str) -> str:
    r"""Return the text without escape sequences and control characters but ``\t\n\r``.

    Of a string sequence that never ends only the introducer goes, so that it hides nothing.
    """
    return _ESCAPES.sub("", text)


def clean_line(line: str) -> str:
    """Return what a terminal would show of one line: unescaped, only its last redraw."""
    redrawn = _ERASED_LINE.sub("\r", line).rstrip("\r")
    return strip_escapes(redrawn.rpartition("\r")[2])


@dataclass(frozen=True, slots=True)
class LineTooLong:
    """Stands for a line of more than ``limit`` bytes, which was dropped."""

    limit: int


class LineSplitter:
    r"""Splits a byte stream into lines; how it is cut into chunks makes no difference.

    Rule 1: what stands before a ``\r`` inside a line was drawn over and is dropped, so a spinner
    costs no memory. Rule 2: no more than the limit and one chunk is ever held. Rule 3: a line that
    is too long gives one LineTooLong, where it passes the limit, and the next line is read again.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._line = bytearray()
        self._returned = False
        self._skipping = False

    def feed(self, chunk: bytes) -> list[str | LineTooLong]:
        """Return the lines that this chunk completes, raw but decoded."""
        found: list[str | LineTooLong] = []
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            found += self._append(piece)
            found += self._take()
        found += self._append(rest)
        return found

    def close(self) -> list[str]:
        """Return the last line where it has no end of line."""
        return self._take() if self._line else []

    def _append(self, piece: bytes) -> list[LineTooLong]:
        for number, segment in enumerate(piece.split(b"\r")):
            self._returned = self._returned or number > 0
            if not segment or self._skipping:
                continue
            if self._returned:
                self._line.clear()
                self._returned = False
            self._line += segment
            if len(self._line) > self._limit:
                self._skipping = True
                self._line.clear()
                return [LineTooLong(self._limit)]
        return []

    def _take(self) -> list[str]:
        line = self._line.decode(errors="replace")
        skipped = self._skipping
        self._line.clear()
        self._returned = False
        self._skipping = False
        return [] if skipped else [line]
