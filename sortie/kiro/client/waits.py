"""Code that waits without knowing on what: the same for asyncio, trio and no event loop at all.

It is a generator that yields what it waits for and is resumed when that may have come. The driver
does the waiting, so the code needs no thread, task or event loop of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from selectors import BaseSelector
from typing import TypeVar

import anyio
from msgspec import Struct

T = TypeVar("T")


class Wait(Struct, frozen=True):
    """Wait until something is ready in ``selector``, or for ``seconds``; None is without end."""

    seconds: float | None = None
    selector: BaseSelector | None = None


Waits = Generator[Wait, None, T]
"""Something that waits, and returns a T in the end."""


async def drive(waits: Waits[T]) -> T:
    """Run it in the event loop that runs already."""
    try:
        while True:
            await _wait(next(waits))
    except StopIteration as end:
        result: T = end.value
        return result


async def _wait(wait: Wait) -> None:
    with anyio.move_on_after(math.inf if wait.seconds is None else wait.seconds):
        if wait.selector is None:
            await anyio.sleep_forever()
        else:
            # A selector's own descriptor is ready when one of those in it is.
            await anyio.wait_readable(_descriptor(wait.selector))


def drive_without_loop(waits: Waits[T]) -> T:
    """Run it in this thread, which waits meanwhile."""
    try:
        while True:
            wait = next(waits)
            if wait.selector is not None:
                wait.selector.select(wait.seconds)
            elif wait.seconds is not None:
                time.sleep(wait.seconds)
    except StopIteration as end:
        result: T = end.value
        return result


def _descriptor(selector: BaseSelector) -> int:
    number: int = selector.fileno()  # type: ignore[attr-defined]  # epoll and kqueue have it
    return number
