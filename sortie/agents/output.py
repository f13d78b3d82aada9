"""The output of an agent's process as clean lines of limited length, for its adapter to read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, runtime_checkable

from sortie.lines import LineSplitter, LineTooLong, RawLineSplitter, strip_escapes
from sortie.model.secrets import redactor
from sortie.model.texts import cut, end_of
from sortie.model.turns import AgentEvent, ErrorsWritten

LAST_ANSWER_LIMIT = 64 * 1024
"""Characters of an answer that are kept; the page that shows it cuts it further."""


class LastAnswer:
    """Collects the last message of a turn; ``text`` is "" where nothing was said."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self._message: str | None = None
        self._is_open = False

    @property
    def text(self) -> str:
        """What was said, without escape sequences and blank lines around it."""
        return strip_escapes("".join(self._parts)[:LAST_ANSWER_LIMIT]).strip()

    def add(self, text: str, message: str | None = None, joint: str = "") -> None:
        """Take a part of a message, which ``message`` names where the agent numbers its messages.

        ``joint`` stands between it and the part before.
        """
        if self._is_open and message == self._message:
            if self._size < LAST_ANSWER_LIMIT:
                self._parts += (joint, text)
                self._size += len(joint) + len(text)
        elif text.strip():
            self._parts, self._size = [text], len(text)
            self._message, self._is_open = message, True

    def close(self) -> None:
        """Let what is said next be another message."""
        self._is_open = False


WARNINGS_SHOWN = 20
WARNING_LENGTH = 500
STDERR_TAIL = 64 * 1024
_STDERR_LINE = 64 * 1024


class OutputReader(Protocol):
    """What an adapter makes of its agent's output; plain, without I/O.

    Lines come without secrets, and without escape sequences but where a splitter leaves them; each
    comes once, the last one also where it has no end of line.
    """

    def stdout(self, line: str) -> Sequence[AgentEvent]:
        """Take a line of stdout and return its events."""
        ...

    def stderr(self, line: str) -> bool:
        """Take a line of stderr, not blank; return whether to show it where the turn fails."""
        ...

    def close(self, stderr: str) -> Sequence[AgentEvent]:
        """Take the end of the output, with the last 64 KiB of stderr; return its events.

        It comes however the process ends, even where it was ended.
        """
        ...


@runtime_checkable
class BatchReader(OutputReader, Protocol):
    """A reader that takes the lines of stdout by the chunk: cheaper where they are many."""

    def stdout_lines(self, lines: Sequence[str]) -> Sequence[AgentEvent]:
        """Take the lines that one chunk has completed, and return their events.

        It is what ``stdout`` tells of each, but that one Notification may stand for several lines.
        """
        ...


class ErrorOutput:
    """The stderr of one process: its lines without secrets, and the last of it.

    ``shows`` tells of each line, not blank, whether to show it where the turn fails.
    """

    def __init__(
        self, redacted: Callable[[str], str], shows: Callable[[str], bool] = lambda _: True
    ) -> None:
        self._redacted = redacted
        self._shows = shows
        self._lines = LineSplitter(_STDERR_LINE)
        self._tail = bytearray()
        self._warnings: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """The last lines to be shown, each cut."""
        return tuple(self._warnings)

    @property
    def tail(self) -> str:
        """The last 64 KiB, without escape sequences."""
        text = strip_escapes(self._tail.decode(errors="replace"))
        return end_of(text, STDERR_TAIL, self._redacted)

    def take(self, chunk: bytes) -> list[AgentEvent]:
        """Take a chunk and return the events of its lines."""
        self._tail += chunk
        if len(self._tail) > 4 * STDERR_TAIL:  # not each time: cutting moves all that is kept
            del self._tail[: -2 * STDERR_TAIL]
        # A carriage return ends a line here, so that no progress bar hides a message.
        return self._told(self._lines.feed(chunk.replace(b"\r", b"\n")))

    def close(self) -> list[AgentEvent]:
        """Take the end of the stream and return the event of its last line."""
        return self._told(self._lines.close())

    def _told(self, found: Sequence[str | LineTooLong]) -> list[AgentEvent]:
        lines = [line.rstrip() for line in found if isinstance(line, str)]
        lines = redacted_lines([line for line in lines if line], self._redacted)
        for line in map(str.strip, lines):
            if self._shows(line):
                self._warnings.append(cut(line, WARNING_LENGTH))
                del self._warnings[:-WARNINGS_SHOWN]
        return [ErrorsWritten(text="\n".join(lines))] if lines else []


class AgentOutput:
    """The lines of one process for a reader; ``splitter`` makes those of stdout, clean ones where
    none is given.

    Rule 1: memory is bounded, however much the agent writes. Rule 2: no secret leaves here.
    Rule 3: nothing of stdout counts after a line that was too long.
    """

    def __init__(
        self,
        reader: OutputReader,
        secrets: Collection[str] = (),
        splitter: RawLineSplitter | None = None,
    ) -> None:
        self._reader = reader
        self._batches = reader if isinstance(reader, BatchReader) else None
        self.line_too_long = False
        self._redacted = redactor(secrets)
        self._stdout = splitter or LineSplitter()
        self._stderr = ErrorOutput(self._redacted, reader.stderr)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The last lines of stderr that the reader would show, each cut."""
        return self._stderr.warnings

    @property
    def errors(self) -> str:
        """The last 64 KiB of stderr, without escape sequences."""
        return self._stderr.tail

    def take(self, source: int, chunk: bytes) -> list[AgentEvent]:
        """Take a chunk of stdout (1) or stderr (2) and return the events of its lines."""
        if source == 1:
            return self._tell(self._stdout.feed(chunk))
        return self._stderr.take(chunk)

    def close(self) -> list[AgentEvent]:
        """Take the end of both streams and return the last events."""
        told = [*self._stderr.close(), *self._tell(self._stdout.close())]
        return [*told, *self._reader.close(self.errors)]

    def _tell(self, found: Sequence[str | LineTooLong]) -> list[AgentEvent]:
        if self.line_too_long:
            return []
        lines = [line.rstrip() for line in found if isinstance(line, str)]
        if len(lines) < len(found):
            self.line_too_long = True
            lines = lines[: next(n for n, line in enumerate(found) if not isinstance(line, str))]
        lines = redacted_lines(lines, self._redacted)
        if self._batches is not None:
            return [*self._batches.stdout_lines(lines)]
        return [event for line in lines for event in self._reader.stdout(line)]


def redacted_lines(lines: list[str], redacted: Callable[[str], str]) -> list[str]:
    """Return the lines redacted; one search over all finds out whether any has a secret."""
    text = "\n".join(lines)
    return lines if redacted(text) == text else [redacted(line) for line in lines]
