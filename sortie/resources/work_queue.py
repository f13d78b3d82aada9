"""Work that may block, done piece after piece by one thread, as long as none of it does block.

Threads of Python do not compute at the same time: several that are at work take the interpreter's
lock from each other at every system call, which costs more than the calls. So one thread at a time
takes work, and what comes meanwhile waits for it without another thread being woken.

Rule 1: who has been at one piece for ``LONGEST_PIECE`` seconds takes no more; another one goes on.
Rule 2: where no thread can be had, all that waits is refused; none of it was begun.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Protocol

import trio

LONGEST_PIECE = 0.01
"""Seconds: more than it takes to read some files, and less than anybody notices who waits."""


class Work(Protocol):
    """A piece of work."""

    def perform(self) -> None:
        """Do it, in a thread. Raises nothing."""
        ...

    def refuse(self, why: Exception) -> None:
        """Be told that there is no thread for it."""
        ...


class WorkQueue:
    """What is to be done in threads for the tasks of one run of trio, and asked for by them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Work] = deque()
        self._worker: object | None = None  # stands for the thread that takes work
        self._begun_at = 0.0  # when it took its last piece, by the real clock
        self._is_watched = False

    def add(self, work: Work) -> None:
        """Have a piece of work done, or refused at once; the first to come is the first served."""
        with self._lock:
            self._waiting.append(work)
        if self._is_taken_on():
            self._have_it_watched()
        else:
            self._take_on()

    def withdraw(self, work: Work) -> bool:
        """Have a piece of work not done; tell whether that was possible, as it was not begun."""
        with self._lock:
            if work in self._waiting:
                self._waiting.remove(work)
                return True
            return False

    def _is_taken_on(self) -> bool:
        with self._lock:
            is_late = time.monotonic() - self._begun_at >= LONGEST_PIECE
            return not self._waiting or (self._worker is not None and not is_late)

    def _take_on(self) -> None:
        """Have another thread take work from now on."""
        worker = object()
        with self._lock:
            self._worker, self._begun_at = worker, time.monotonic()
        try:
            trio.lowlevel.start_thread_soon(lambda: self._work(worker), lambda _: None)
        except (RuntimeError, MemoryError) as exc:
            with self._lock:
                refused, self._waiting = self._waiting, deque()
                self._worker = None
            for work in refused:
                work.refuse(exc)

    def _work(self, worker: object) -> None:
        while (work := self._next(worker)) is not None:
            work.perform()

    def _next(self, worker: object) -> Work | None:
        with self._lock:
            if self._worker is not worker:
                return None
            if not self._waiting:
                self._worker = None
                return None
            self._begun_at = time.monotonic()
            return self._waiting.popleft()

    def _have_it_watched(self) -> None:
        if not self._is_watched:
            self._is_watched = True
            trio.lowlevel.spawn_system_task(self._watch)

    async def _watch(self) -> None:
        """See that nothing waits for a thread that does not come back."""
        try:
            while self._waiting:
                await trio.sleep(LONGEST_PIECE)
                if not self._is_taken_on():
                    self._take_on()
        finally:
            self._is_watched = False


_CURRENT: trio.lowlevel.RunVar[WorkQueue] = trio.lowlevel.RunVar("work for threads")


def current_work_queue() -> WorkQueue:
    """Return the queue of this run of trio."""
    try:
        return _CURRENT.get()
    except LookupError:
        queue = WorkQueue()
        _CURRENT.set(queue)
        return queue
