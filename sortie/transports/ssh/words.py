"""Tells the words of our own scripts from what else a channel carries.

A word is one line behind a byte 1 and the nonce of its script, which nothing else can know.
"""

from __future__ import annotations

import re

WORD_LIMIT = 64 * 1024
"""Bytes of a word that are kept: a host that never ends its line must not fill our memory."""

_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)


def numbers_in(text: str) -> list[int]:
    """Return the numbers between the blanks of a word; a host may say anything else, too."""
    return [int(part) for part in text.split() if _NUMBER.fullmatch(part)]


class Words:
    """Takes the words out of one stream, which may come in pieces of any size."""

    def __init__(self, nonce: str) -> None:
        self._mark = b"\1" + nonce.encode() + b" "
        self._held = b""
        self._cut = False  # what comes up to the next line end belongs to a word that was cut

    def feed(self, chunk: bytes) -> list[tuple[bytes, str | None]]:
        """Return what came, in order: bytes that are no word, and the word behind them, if any.

        What may turn out to begin a word is held back. A word is cut at WORD_LIMIT.
        """
        if self._cut:
            _, end, chunk = chunk.partition(b"\n")
            self._cut = not end
        rest = self._held + chunk
        found: list[tuple[bytes, str | None]] = []
        while True:
            before, mark, after = rest.partition(self._mark)
            line, end, behind = after.partition(b"\n")
            if not mark or not (end or len(line) >= WORD_LIMIT):
                break
            self._cut = not end
            found.append((before, line[:WORD_LIMIT].decode("utf-8", "replace").strip()))
            rest = behind
        held = len(before) if mark else self._doubtful(rest)
        self._held = rest[held:]
        if held:
            found.append((rest[:held], None))
        return found

    def close(self) -> bytes:
        """Return what was held back and is no word, as nothing follows."""
        held, self._held = self._held, b""
        return held

    def _doubtful(self, rest: bytes) -> int:
        """Return from where on the end of some bytes may be the beginning of a word."""
        at = rest.rfind(b"\1", max(0, len(rest) - len(self._mark) + 1))
        return at if at >= 0 and self._mark.startswith(rest[at:]) else len(rest)
