"""A thread that ends the process when nothing else can: its supervisor starts it again.

Rule 1: it counts only seconds in which it could itself run: a process that is stopped, or a
machine that is paused, stands still without being stuck.
Rule 2: nothing it needs at the end is made then, as there may be no memory for it.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

EXIT_STUCK = 70
"""The exit code of a process that was ended by its watchdog."""

STANDSTILL = 180.0
"""Seconds without a round of the loop, which takes milliseconds, after which it is stuck."""

LAST_SECONDS = 30.0
"""Seconds in which a process that has to end has to be gone."""

CHECK = 5.0
"""Seconds from one look at the loop to the next."""

_CHECK_DELAY = 1.0  # a check that comes later than this was paused itself
_WRITING = 5  # seconds in which its last message has to be read

_STUCK = b"sortie: the daemon's loop has stood still for minutes; where its threads are:\n"
_NOT_GONE = b"sortie: the daemon could not end in time; where its threads are:\n"


def leave_at_once(message: bytes) -> None:
    """Write a message and where all threads are to stderr, and end the process."""
    try:
        signal.alarm(_WRITING)  # its default action ends a process whose stderr is not read
        os.write(2, message)
        faulthandler.dump_traceback(file=2, all_threads=True)
    finally:
        os._exit(EXIT_STUCK)


class Watchdog:
    """Watches a loop for the length of a ``with``; ``beats`` tells how often it came round."""

    def __init__(
        self,
        beats: Callable[[], int],
        leave: Callable[[bytes], None] = leave_at_once,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._beats = beats
        self._leave = leave
        self._sleep = sleep
        self._now = now
        self._seen = -1
        self._still = 0.0
        self._left: float | None = None
        self._over = False
        self._thread = threading.Thread(target=self._watch, name="sortie-watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        # Where it ends by an error, the interpreter may still wait for a thread that hangs.
        self._over = kind is None or self._left is None

    def leave_within(self, seconds: float = LAST_SECONDS) -> None:
        """Have the process gone after so many seconds, whatever becomes of its loop; where that was
        asked for before, at the earlier of both times."""
        self._left = seconds if self._left is None else min(self._left, seconds)

    def _watch(self) -> None:
        at = self._now()
        while not self._over:
            try:
                self._sleep(CHECK)
                before, at = at, self._now()
                if at - before <= CHECK + _CHECK_DELAY:
                    self.check()
            except MemoryError:
                continue  # the next check may fare better, and this one is all that is left

    def check(self) -> None:
        """Judge, ``CHECK`` seconds after the last time."""
        if self._left is not None:
            self._left -= CHECK
            if self._left <= 0:
                self._leave(_NOT_GONE)
        seen = self._beats()
        if seen != self._seen:
            self._seen, self._still = seen, 0.0
            return
        self._still += CHECK
        if self._still >= STANDSTILL:
            self._leave(_STUCK)
