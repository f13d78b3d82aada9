"""Split what a program writes into lines, chunk by chunk: as terminals show them, or unchanged."""

from __future__ import annotations

import re

from msgspec import Struct

LINE_LIMIT = 10 * 1024 * 1024
"""Bytes that a line of output may have."""

_STRING = r"[^\x07\x1b\x9c\n]*+ (?: \x07 | \x1b\\ | \x9c )"  # the text of an OSC and its like
_ESCAPES = re.compile(
    rf"""
    [\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]            # a control character, and what it introduces
    (?: (?<=\x1b) (?: \[ [0-?]*+ [\ -/]*+ [@-~]?+     # CSI: colours, cursor, erasing
                    | [\]PX^_] {_STRING}             # OSC, DCS, SOS, PM, APC
                    | [\ -/]*+ [0-~]?+ )             # any other, or one that was cut short
      | (?<=\x9b) [0-?]*+ [\ -/]*+ [@-~]?+            # the same in one character: CSI
      | (?<=[\x90\x98\x9d-\x9f]) {_STRING}
    )?
    """,
    re.VERBOSE,
)
"""Begins with a set of characters, so that a search passes quickly over what is plain.

No group in it is possessive: before Python 3.11.5 a match of such a group may never end.
"""

_ERASED_LINE = re.compile(r"\x1b\[[12]K")

_PLAIN = bytes({*range(256)} - {*range(0x20), 0x7F, 0xC2} | {*b"\t\n"})
"""Bytes of which no escape sequence or control character begins; those of C1 begin with C2."""


def strip_escapes(text: str) -> str:
    r"""Return the text without escape sequences and control characters but ``\t\n\r``.

    Of a string sequence that never ends only the introducer goes, so that it hides nothing.
    """
    return _ESCAPES.sub("", text)


def clean_line(line: str) -> str:
    """Return what a terminal would show of one line: unescaped, only its last redraw."""
    redrawn = _ERASED_LINE.sub("\r", line).rstrip("\r")
    return strip_escapes(redrawn.rpartition("\r")[2])


def clean_lines(block: bytes | bytearray) -> list[str]:
    r"""Return what ``clean_line`` makes of the lines of a block that holds no ``\r``, all at once.

    Lines are parted by line feeds, which no escape sequence crosses.
    """
    text = block.decode(errors="replace")
    if not block.translate(None, _PLAIN):
        return text.split("\n")
    if _ERASED_LINE.search(text):
        return [clean_line(line) for line in text.split("\n")]
    return strip_escapes(text).split("\n")


class LineTooLong(Struct, frozen=True):
    """Stands for a line of more than ``limit`` bytes, which was dropped."""

    limit: int


class RawLineSplitter:
    """Splits a byte stream into lines as they are, such as JSON, in which control characters of
    terminals mean nothing; how the stream is cut into chunks makes no difference.

    Rule 1: no more than the limit and one chunk is ever held. Rule 2: a line that is too long
    gives one LineTooLong, where it passes the limit, and the next line is read again.
    """

    __slots__ = ("_limit", "_line", "_skipping")

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._line = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> list[str | LineTooLong]:
        """Return the lines that this chunk completes."""
        found: list[str | LineTooLong] = []
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            found += self._append(piece)
            found += self._take()
        return [*found, *self._append(rest)]

    def close(self) -> list[str]:
        """Return the last line where it has no end of line."""
        return self._take() if self._line else []

    def _append(self, piece: bytes) -> list[LineTooLong]:
        if self._skipping:
            return []
        self._line += piece
        if len(self._line) <= self._limit:
            return []
        self._skipping = True
        self._line.clear()
        return [LineTooLong(self._limit)]

    def _take(self) -> list[str]:
        """Return the line that ends here, unless it was too long."""
        lines = [] if self._skipping else [self._shown(self._line.decode(errors="replace"))]
        self._line.clear()
        self._skipping = False
        return lines

    def _shown(self, line: str) -> str:
        return line


class LineSplitter(RawLineSplitter):
    r"""Splits a byte stream into the lines that a terminal would show.

    Rule 3: what stands before a ``\r`` inside a line was drawn over and is dropped, so a spinner
    costs no memory.
    """

    __slots__ = ("_returned",)

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        super().__init__(limit)
        self._returned = False

    def feed(self, chunk: bytes) -> list[str | LineTooLong]:
        """Return the lines that this chunk completes, as a terminal would show them."""
        end = chunk.rfind(b"\n")
        if end < 0:
            return [*self._append(chunk)]
        block = self._line + chunk[:end]
        if self._returned or self._skipping or b"\r" in block or len(block) > self._limit:
            return super().feed(chunk)
        self._line.clear()
        found: list[str | LineTooLong] = [*clean_lines(block)]
        if rest := chunk[end + 1 :]:
            found += self._append(rest)
        return found

    def _append(self, piece: bytes) -> list[LineTooLong]:
        for number, segment in enumerate(piece.split(b"\r")):
            self._returned = self._returned or number > 0
            if not segment:
                continue
            if self._returned:
                self._line.clear()
                self._returned = False
            if too_long := super()._append(segment):
                return too_long
        return []

    def _take(self) -> list[str]:
        self._returned = False
        return super()._take()

    def _shown(self, line: str) -> str:
        return clean_line(line)
