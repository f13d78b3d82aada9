"""Makes this process run out of things: of descriptors in earnest, of threads by refusing them."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import trio

from sortie.resources import descriptors


@contextmanager
def descriptors_left(number: int) -> Iterator[None]:
    """Leave this process so many descriptors; with 0 it gets none, whatever it closes meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    top = max(int(name) for name in os.listdir("/proc/self/fd"))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (top + number + 2 if number else 3, hard))
        taken: list[int] = []
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        for fd in taken[number:]:
            stack.callback(os.close, fd)
        for fd in taken[:number]:
            os.close(fd)
        yield


@contextmanager
def own_reserve() -> Iterator[None]:
    """Keep descriptors back while the block lasts."""
    descriptors.keep_reserve()
    try:
        yield
    finally:
        descriptors.give_up_reserve()


class ThreadLimit:
    """Refuses threads as the system does, while it is ``reached`` and for names it applies to."""

    def __init__(self, only: str) -> None:
        self.reached = True
        self.refused = 0
        self._only = only

    def refuses(self, thread: threading.Thread) -> bool:
        if self.reached and self._only in thread.name:
            self.refused += 1
            return True
        return False


@contextmanager
def no_threads(patch: pytest.MonkeyPatch, only: str = "") -> Iterator[ThreadLimit]:
    """Give no thread while the block lasts and the limit is reached, not even an idle one."""
    limit = ThreadLimit(only)
    start, over = threading.Thread.start, threading.Event()

    def refuse(thread: threading.Thread) -> None:
        if limit.refuses(thread):
            raise RuntimeError("can't start new thread")
        start(thread)

    patch.setattr(threading.Thread, "start", refuse)
    try:
        if not only:
            with suppress(RuntimeError):
                while True:
                    trio.lowlevel.start_thread_soon(over.wait, lambda _: None)
        yield limit
    finally:
        over.set()
        patch.setattr(threading.Thread, "start", start)
