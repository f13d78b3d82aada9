"""Makes this process run out of things: of descriptors in earnest, of threads by refusing them."""

from __future__ import annotations

import _thread
import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
import trio

from sortie.resources import descriptors, register


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
    """Refuses threads as the system does, while it is ``reached``."""

    def __init__(self) -> None:
        self.reached = True
        self.refused = 0

    def start(self, work: Callable[..., object], args: tuple[Any, ...]) -> int:
        """Do as ``_thread.start_new_thread``, or refuse."""
        if self.reached:
            self.refused += 1
            raise RuntimeError("can't start new thread")
        return _thread.start_new_thread(work, args)


@contextmanager
def no_threads(patch: pytest.MonkeyPatch) -> Iterator[ThreadLimit]:
    """Give no thread while the block lasts and the limit is reached, not even an idle one."""
    limit = ThreadLimit()
    start, over = threading.Thread.start, threading.Event()
    start_soon = trio.lowlevel.start_thread_soon

    def refuse(thread: threading.Thread) -> None:
        if limit.reached:
            limit.refused += 1
            raise RuntimeError("can't start new thread")
        start(thread)

    def refuse_soon(*args: Any, **named: Any) -> None:
        if limit.reached:
            limit.refused += 1
            raise RuntimeError("can't start new thread")
        start_soon(*args, **named)

    with patch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        patched.setattr(register, "start_new_thread", limit.start)
        try:
            with suppress(RuntimeError):
                while True:
                    trio.lowlevel.start_thread_soon(over.wait, lambda _: None)
            # An idle one may come back meanwhile from what an earlier test left behind.
            patched.setattr("trio._threads.start_thread_soon", refuse_soon)  # as trio calls it
            yield limit
        finally:
            over.set()
