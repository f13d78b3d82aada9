"""Where log lines leave the process: a stream that may break, fill up or stop being read.

Rule 1: a line is written whole, or what stands of it is closed off before the next line.
Rule 2: a line that cannot be written is counted, and the next line that can be says how many.
Rule 3: a reader that stopped reading holds the daemon up for ``WRITE_TIMEOUT`` once, not each line.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import TextIO

WRITE_TIMEOUT = 0.1
"""Seconds that a line waits for room in a pipe or terminal."""

_PIPE_CHUNK = 4096  # a pipe that polls writable takes this many bytes without blocking (PIPE_BUF)


class LogOutput:
    """Writes lines to a stream; never raises, and never waits for long.

    ``notice`` renders the line that tells how many lines were lost before it. ``stream`` is None
    where the process has no stderr.
    """

    def __init__(self, stream: TextIO | None, notice: Callable[[int], str]) -> None:
        self._stream = stream
        self._fd = _descriptor(stream)
        self._notice = notice
        self._lock = threading.Lock()
        self._cut_off = False
        self._unreported = 0
        self._lost = 0

    @property
    def lost(self) -> int:
        """How many lines could not be written."""
        return self._lost

    def write(self, line: str) -> None:
        """Write one line, given without its end; safe to call from any thread."""
        with self._lock:
            if self._unreported:
                reported = self._unreported
                if not self._put(self._notice(reported)):
                    self._count_lost()
                    return
                self._unreported -= reported
            if not self._put(line):
                self._count_lost()

    def _count_lost(self) -> None:
        self._unreported += 1
        self._lost += 1

    def _put(self, line: str) -> bool:
        text = f"\n{line}\n" if self._cut_off else f"{line}\n"
        try:
            if self._fd is not None:
                return self._put_bytes(self._fd, text.encode(errors="backslashreplace"))
            if self._stream is not None:
                self._stream.write(text)
                self._stream.flush()
                return True
        except (OSError, ValueError):  # ValueError: the stream was closed
            return False
        return False

    def _put_bytes(self, fd: int, data: bytes) -> bool:
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        rest = memoryview(data)
        try:
            while rest:
                if not poll.poll(0 if self._unreported else WRITE_TIMEOUT * 1000):
                    return False
                rest = rest[os.write(fd, rest[:_PIPE_CHUNK]) :]
        finally:
            if len(rest) < len(data):
                self._cut_off = len(rest) > 0
        return True


def _descriptor(stream: TextIO | None) -> int | None:
    if stream is None:
        return None
    try:
        stream.flush()
        return stream.fileno()
    except (OSError, ValueError):  # no file below it (io.UnsupportedOperation is both), or closed
        return None
