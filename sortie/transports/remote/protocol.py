"""What our scripts on a host say to the daemon, apart from what else a channel carries.

A message is one line behind a byte 1 and the nonce of its script, which nothing else can know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

GO = b"go\n"
"""The line that a launch script waits for before it does anything, and before it uses a stdin."""

HERE = "here"
"""The first message of every script."""

SCRIPT_MESSAGE_LIMIT = 64 * 1024
"""Bytes of a message that are kept: a host that never ends its line must not fill our memory."""

_STARTED, _GONE, _LAPSED = "started", "gone", "lapsed"
_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)


def numbers_in(text: str) -> list[int]:
    """Return the numbers between the blanks of a text; a host may say anything else, too."""
    return [int(part) for part in text.split() if _INTEGER.fullmatch(part)]


class MessageParser:
    """Takes the messages out of one stream, which may come in pieces of any size."""

    def __init__(self, nonce: str) -> None:
        self._mark = b"\1" + nonce.encode() + b" "
        self._held = b""

    def feed(self, chunk: bytes) -> list[tuple[bytes, str | None]]:
        """Return what came, in order: bytes that are no message, and the message behind them, if
        any.

        What may turn out to begin a message is held back. A message is cut at its limit, and what
        follows in its line is none.
        """
        rest = self._held + chunk
        found: list[tuple[bytes, str | None]] = []
        while True:
            before, mark, after = rest.partition(self._mark)
            line, end, behind = after[:SCRIPT_MESSAGE_LIMIT].partition(b"\n")
            if not mark or not (end or len(line) == SCRIPT_MESSAGE_LIMIT):
                break
            found.append((before, line.decode("utf-8", "replace").strip()))
            rest = behind + after[SCRIPT_MESSAGE_LIMIT:]
        held = len(before) if mark else self._doubtful(rest)
        self._held = rest[held:]
        if held:
            found.append((rest[:held], None))
        return found

    def close(self) -> bytes:
        """Return what was held back and is no message, as nothing follows."""
        held, self._held = self._held, b""
        return held

    def _doubtful(self, rest: bytes) -> int:
        """Return from where on the end of some bytes may be the beginning of a message."""
        at = rest.rfind(b"\1", max(0, len(rest) - len(self._mark) + 1))
        return at if at >= 0 and self._mark.startswith(rest[at:]) else len(rest)


Item = tuple[int, bytes, str | None]
"""Bytes of stdout (1) or stderr (2), or of neither (0, what a login prints), and the message behind
them, if any."""


class ScriptOutput:
    """Reads the output of a script that only answers: its messages stand on stdout."""

    gone: list[int] | None = None
    lapsed = False
    is_complete = False

    def __init__(self, nonce: str) -> None:
        self._stdout = MessageParser(nonce)

    def feed(self, number: int, chunk: bytes) -> Iterator[Item]:
        """Yield what came on stdout (1) or stderr (2), in order."""
        if number == 1:
            for before, message in self._stdout.feed(chunk):
                yield 1, before, message
        else:
            yield 0, chunk, None

    def close(self) -> Iterator[Item]:
        """Yield what was held back, as nothing more comes."""
        yield 1, self._stdout.close(), None


class LaunchOutput(ScriptOutput):
    """Reads the output of a launch script and of the program that it becomes.

    What comes before ``started``, which the script says on both streams, is the login's. ``gone``
    is None until the watchdog has said its last message, and then the pids that stay. The watchdog
    says it on both streams, behind all that the program wrote there: then ``is_complete`` is true,
    whatever holds the streams open. ``lapsed`` tells that the watchdog ended the program because it
    heard nothing from the daemon.
    """

    def __init__(self, nonce: str) -> None:
        self._parsers = {1: MessageParser(nonce), 2: MessageParser(nonce)}
        self._started: set[int] = set()
        self._complete: set[int] = set()

    def feed(self, number: int, chunk: bytes) -> Iterator[Item]:
        """Yield what came on stdout (1) or stderr (2), in order, without the last messages."""
        for before, message in self._parsers[number].feed(chunk):
            stream = self._stream(number)
            yield stream, before, message and self._understand(number, message)

    def close(self) -> Iterator[Item]:
        """Yield what was held back, as nothing more comes."""
        for number, parser in self._parsers.items():
            yield self._stream(number), parser.close(), None

    def _stream(self, number: int) -> int:
        return number if number in self._started else 0

    def _understand(self, number: int, message: str) -> str | None:
        """Note what a message says; return it where the start of the program waits for it."""
        name, _, rest = message.partition(" ")
        if name == _GONE:
            self._complete.add(number)
            self.is_complete = len(self._complete) == len(self._parsers)
            self.gone = numbers_in(rest)
            return None
        if name == _LAPSED:
            self.lapsed = True
            return None
        if name == _STARTED:
            self._started.add(number)
        return message if number == 1 else None
