"""What our scripts on a host and we say to each other, apart from what else a channel carries.

A word is one line behind a byte 1 and the nonce of its script, which nothing else can know.
Rule 1: the host is told to go on at most once, and never after that was withdrawn; who withdraws
learns which of the two it is. Rule 2: a word can be read in trio before it is answered.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

GO = b"go\n"
"""What the script waits for before it goes on."""

HERE = "here"
"""Its first word, which is answered on the asyncio thread, as soon as it comes."""

_NOISE = 64 * 1024  # bytes of what a login says before our script
_MOST_WORDS = 16  # that trio is told; our script has five
_GONE = "gone"
_LAPSED = "lapsed"

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


class Dialogue:
    """One launch's; all but ``withdraw`` is called on the asyncio thread.

    ``script`` is what the command's stdin begins with; with ``beat``, a line follows on GO every
    so many seconds. ``noise`` is what the login said instead of our script; ``gone`` is None
    until the watchdog has said its last word, and then the pids that stay. It says that on both
    pipes, behind all that the program wrote there: then ``is_complete``, whoever holds them open.
    ``lapsed`` tells that it ended the program because it had not heard from us for the lease.
    """

    def __init__(self, script: bytes, nonce: str, *, beat: float | None = None) -> None:
        self.script = script
        self.beat = beat
        self.noise = b""
        self.gone: list[int] | None = None
        self.lapsed = False
        self._words = {1: Words(nonce), 2: Words(nonce)}
        self._begun = {1: False, 2: False}  # the program's own output
        self._last_word = Words(f"{nonce} {_GONE}")  # all that is ours on stdout from there on
        self._complete = {1: False, 2: False}
        self._told = 0
        self._lock = threading.Lock()
        self._answered = False
        self._withdrawn = False

    def hear(self, number: int, chunk: bytes) -> Iterator[tuple[bytes, str | None]]:
        """Yield, in order, what is the program's, and the word behind it that is for trio."""
        if number == 1 and self._begun[1]:
            yield from self._pass_on(chunk)
            return
        for before, word in self._words[number].feed(chunk):
            output = self._of_program(number, before)  # before a word makes it so
            yield output, None if word is None else self._understand(number, word)
        if number == 1 and self._begun[1]:
            yield from self._pass_on(self._words[1].close())

    @property
    def is_complete(self) -> bool:
        """Whether nothing that our script or the program has to say can follow."""
        return all(self._complete.values())

    def close(self) -> Iterator[tuple[int, bytes]]:
        """Yield what could have begun a word and was the program's, as nothing more comes."""
        for number, words in self._words.items():
            yield number, self._of_program(number, words.close())
        yield 1, self._last_word.close()

    def consent(self, word: str) -> bool:
        """Tell whether GO is to be said to this word now; it counts as said from here on."""
        if word.partition(" ")[0] != HERE:
            return False
        with self._lock:
            if self._answered or self._withdrawn:
                return False
            self._answered = True
            return True

    def withdraw(self) -> bool:
        """Have GO not said any more; return whether it was not said. Called in trio."""
        with self._lock:
            self._withdrawn = True
            return not self._answered

    def _of_program(self, number: int, chunk: bytes) -> bytes:
        if self._begun[number]:
            return chunk
        self.noise += chunk[: _NOISE - len(self.noise)]
        return b""

    def _understand(self, number: int, word: str) -> str | None:
        name, _, rest = word.partition(" ")
        if name == _GONE:
            self._complete[number] = True
            self.gone = numbers_in(rest)
            return None
        if name == _LAPSED:
            self.lapsed = True
            return None
        if name == "started":
            self._begun[number] = True
        self._told += number == 1
        return word if number == 1 and self._told <= _MOST_WORDS else None

    def _pass_on(self, chunk: bytes) -> Iterator[tuple[bytes, None]]:
        """Yield what the program wrote to stdout, up to the last word there."""
        for before, word in self._last_word.feed(chunk):
            self._complete[1] |= word is not None
            yield before, None
