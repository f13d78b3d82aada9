"""Take in what Kiro writes during one turn and keep what decides and explains its outcome."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sortie.kiro.text import LINE_LIMIT, LineSplitter, LineTooLong, clean_line
from sortie.kiro.trailer import TRAILER_PREFIX, Trailer, find_trailer
from sortie.model import NOTIFICATION_LIMIT, Notification
from sortie.model.secrets import SHORTEST_SECRET, pattern_of

AUTHENTICATION_FAILED = "Authentication failed."

STDOUT_TAIL = 64 * 1024
WARNING_COUNT = 20
WARNING_LENGTH = 500
_STDERR_TAIL = 64 * 1024  # raw bytes; leaves the trailer's window ample room for escapes
_STDERR_LINE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a turn's output says about its outcome.

    ``printed`` counts the bytes of cleaned, non-blank stdout lines. ``warnings`` are the last
    lines of stderr, without the trailer.
    """

    printed: int = 0
    trailer: Trailer | None = None
    authentication_failed: bool = False
    line_too_long: bool = False
    warnings: tuple[str, ...] = ()


class Transcript:
    """The output of one turn.

    Rule 1: memory is bounded, however much the turn writes. Rule 2: no value in ``secrets`` leaves
    here. Rule 3: nothing of stdout counts after a line that was too long.
    """

    def __init__(self, secrets: Collection[str] = (), *, line_limit: int = LINE_LIMIT) -> None:
        self._pattern = _pattern_of(secrets)
        self._stdout = LineSplitter(line_limit)
        self._stderr = LineSplitter(_STDERR_LINE)
        self._printed = 0
        self._tail = bytearray()
        self._stderr_tail = bytearray()
        self._warnings: deque[str] = deque(maxlen=WARNING_COUNT)
        self._authentication_failed = False
        self.line_too_long = False

    def stdout(self, chunk: bytes) -> list[Notification]:
        """Take in a chunk of stdout; return one notification for each line with text in it."""
        return self._print(self._stdout.feed(chunk))

    def stderr(self, chunk: bytes) -> None:
        r"""Take in a chunk of stderr; here ``\r`` ends a line, so no redraw hides a message."""
        self._warn(self._stderr.feed(chunk.replace(b"\r", b"\n")))
        _keep_end(self._stderr_tail, chunk, _STDERR_TAIL)

    def close(self) -> list[Notification]:
        """Take in the end of both streams; return what an unterminated last line gives."""
        self._warn(self._stderr.close())
        return self._print(self._stdout.close())

    @property
    def tail(self) -> str:
        """The end of the cleaned stdout, at most STDOUT_TAIL bytes of UTF-8."""
        return self._tail[-STDOUT_TAIL:].decode(errors="ignore")

    def evidence(self) -> Evidence:
        """Return what is known now."""
        return Evidence(
            printed=self._printed,
            trailer=find_trailer(self._stderr_tail[-_STDERR_TAIL:].decode(errors="replace")),
            authentication_failed=self._authentication_failed,
            line_too_long=self.line_too_long,
            warnings=tuple(self._warnings),
        )

    def _print(self, lines: Iterable[str | LineTooLong]) -> list[Notification]:
        notifications = []
        for raw in lines:
            if isinstance(raw, LineTooLong):
                self.line_too_long = True
            if isinstance(raw, LineTooLong) or self.line_too_long:
                break
            line = _redacted(clean_line(raw).rstrip(), self._pattern)
            encoded = f"{line}\n".encode()
            _keep_end(self._tail, encoded, STDOUT_TAIL)
            if line:
                self._printed += len(encoded)
                notifications.append(Notification(message=line[:NOTIFICATION_LIMIT]))
        return notifications

    def _warn(self, lines: Iterable[str | LineTooLong]) -> None:
        for raw in lines:
            if isinstance(raw, LineTooLong):
                continue
            line = clean_line(raw).strip()
            if AUTHENTICATION_FAILED in line:
                self._authentication_failed = True
            if line and not line.startswith(TRAILER_PREFIX):
                self._warnings.append(_redacted(line, self._pattern)[:WARNING_LENGTH])


def _keep_end(tail: bytearray, data: bytes, limit: int) -> None:
    """Append, and cut the front off only now and then, since that moves all the rest."""
    tail += data[-limit:]
    if len(tail) > 2 * limit:
        del tail[:-limit]


def redact(text: str, secrets: Collection[str]) -> str:
    """Return the text with ``***`` for every occurrence of a secret, however spelled.

    What is too short to be one is left alone: it would be found in every other word.
    """
    return _redacted(text, _pattern_of(secrets))


def _pattern_of(secrets: Collection[str]) -> re.Pattern[str] | None:
    return pattern_of(secret for secret in secrets if len(secret) >= SHORTEST_SECRET)


def _redacted(text: str, pattern: re.Pattern[str] | None) -> str:
    return pattern.sub("***", text) if pattern else text
