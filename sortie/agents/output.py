"""The output of an agent's process as lines, clean and within limits, for its adapter to read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

from sortie.lines import LineSplitter, LineTooLong, Splitter, strip_escapes
from sortie.model.secrets import redactor
from sortie.model.texts import cut, end_of
from sortie.model.turns import AgentEvent, ErrorsWritten

WARNING_COUNT = 20
WARNING_LENGTH = 500
STDERR_TAIL = 64 * 1024
_STDERR_LINE = 64 * 1024


class OutputReader(Protocol):
    """What an adapter makes of its agent's output; plain, without I/O.

    Lines come without secrets, and without escape sequences but where a splitter leaves them; each
    comes once, the last one also where it has no end of line.
    """

    def stdout(self, line: str) -> Sequence[AgentEvent]:
        """Take a line of stdout and return what it tells."""
        ...

    def stderr(self, line: str) -> bool:
        """Take a line of stderr, not blank; return whether to show it where the turn fails."""
        ...

    def close(self, stderr: str) -> Sequence[AgentEvent]:
        """Take the end of the output, with the last 64 KiB of stderr; return what it tells.

        It comes however the process ends, even where it was ended.
        """
        ...


@runtime_checkable
class BatchReader(OutputReader, Protocol):
    """A reader that takes the lines of stdout by the chunk: cheaper where they are many."""

    def stdout_lines(self, lines: Sequence[str]) -> Sequence[AgentEvent]:
        """Take the lines that one chunk has completed, and return what they tell.

        It is what ``stdout`` tells of each, but that one Notification may stand for several lines.
        """
        ...


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
        splitter: Splitter | None = None,
    ) -> None:
        self._reader = reader
        self._batches = reader if isinstance(reader, BatchReader) else None
        self.line_too_long = False
        self._redacted = redactor(secrets)
        self._stdout = splitter or LineSplitter()
        self._stderr = LineSplitter(_STDERR_LINE)
        self._stderr_tail = bytearray()
        self._warnings: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """The last lines of stderr that the reader would show, each cut."""
        return tuple(self._warnings)

    def take(self, source: int, chunk: bytes) -> list[AgentEvent]:
        """Take a chunk of stdout (1) or stderr (2) and return what its lines tell."""
        if source == 1:
            return self._tell(self._stdout.feed(chunk))
        # Here a carriage return ends a line, so that no progress bar hides a message.
        told = self._warn(self._stderr.feed(chunk.replace(b"\r", b"\n")))
        self._stderr_tail += chunk
        if len(self._stderr_tail) > 4 * STDERR_TAIL:  # not each time: it moves all the rest
            del self._stderr_tail[: -2 * STDERR_TAIL]
        return told

    @property
    def errors(self) -> str:
        """The last 64 KiB of stderr, without escape sequences."""
        tail = self._stderr_tail.decode(errors="replace")
        return end_of(strip_escapes(tail), STDERR_TAIL, self._redacted)

    def close(self) -> list[AgentEvent]:
        """Take the end of both streams and return what that tells."""
        told = [*self._warn(self._stderr.close()), *self._tell(self._stdout.close())]
        return [*told, *self._reader.close(self.errors)]

    def _tell(self, found: Sequence[str | LineTooLong]) -> list[AgentEvent]:
        if self.line_too_long:
            return []
        lines = [line.rstrip() for line in found if isinstance(line, str)]
        if len(lines) < len(found):
            self.line_too_long = True
            lines = lines[: next(n for n, line in enumerate(found) if not isinstance(line, str))]
        lines = self._without_secrets(lines)
        if self._batches is not None:
            return [*self._batches.stdout_lines(lines)]
        return [event for line in lines for event in self._reader.stdout(line)]

    def _warn(self, found: Sequence[str | LineTooLong]) -> list[AgentEvent]:
        lines = [line.rstrip() for line in found if isinstance(line, str)]
        lines = self._without_secrets([line for line in lines if line])
        for line in map(str.strip, lines):
            if self._reader.stderr(line):
                self._warnings.append(cut(line, WARNING_LENGTH))
                del self._warnings[:-WARNING_COUNT]
        return [ErrorsWritten(text="\n".join(lines))] if lines else []

    def _without_secrets(self, lines: list[str]) -> list[str]:
        """Return the lines redacted; one look at all of them tells whether there is anything."""
        text = "\n".join(lines)
        return lines if self._redacted(text) == text else [self._redacted(line) for line in lines]
