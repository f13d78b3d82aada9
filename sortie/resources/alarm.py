"""Ends waits by the real clock, whatever clock trio goes by: what hangs in a thread hangs really.

Rule 1: one thread sees to all waits; it sleeps until the first of them is late, and ends where
there is none then.
Rule 2: the time of a wait may be put off until it has come; it is asked for anew then.
Rule 3: a thread that was made and never began, as memory had run out, is replaced by the next wait.
"""

from __future__ import annotations

import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import trio

_OVERDUE = 1.0  # seconds after which a thread that should have woken up is not there


class Alarm:
    """Cancels scopes whose time has come."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._waits: dict[trio.CancelScope, tuple[Callable[[], float], Callable[[], object]]] = {}
        self._wakes_at: float | None = None  # None: there is no thread

    @contextmanager
    def set(self, deadline: Callable[[], float]) -> Iterator[trio.CancelScope]:
        """Have a scope that is cancelled at a time of ``time.monotonic``, asked for in any thread.

        Raises RuntimeError where there is no thread to be had for it.
        """
        with trio.CancelScope() as scope:
            token = trio.lowlevel.current_trio_token()
            self._add(scope, deadline, partial(token.run_sync_soon, scope.cancel))
            try:
                yield scope
            finally:
                with self._lock:
                    self._waits.pop(scope, None)

    def _add(
        self, scope: trio.CancelScope, deadline: Callable[[], float], ring: Callable[[], object]
    ) -> None:
        at = deadline()
        with self._lock:
            if self._wakes_at is None or self._wakes_at + _OVERDUE < time.monotonic():
                start_new_thread(self._watch, ())
                self._wakes_at = at
            elif at < self._wakes_at:
                self._wakes_at = at
                self._lock.notify_all()
            self._waits[scope] = (deadline, ring)

    def _watch(self) -> None:
        with self._lock:
            while self._waits:
                self._wakes_at = min(deadline() for deadline, _ in self._waits.values())
                self._lock.wait(self._wakes_at - time.monotonic())
                self._ring(time.monotonic())
            self._wakes_at = None

    def _ring(self, now: float) -> None:
        for scope, (deadline, ring) in tuple(self._waits.items()):
            if deadline() <= now:
                del self._waits[scope]
                with suppress(trio.RunFinishedError):
                    ring()
