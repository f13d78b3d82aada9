"""Runs blocking work in threads, and waits where the system gives no more of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar, TypeVarTuple

import trio
from outcome import Error, Outcome, capture

from sortie.resources.register import note
from sortie.resources.shortages import shortage_behind

SHORTAGE_RETRY_LIMIT = 30.0
"""Seconds for which something is tried again that a shortage stands in the way of."""

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two tries: each pause is twice as long as the one before, up to the longest."""

T = TypeVar("T")
Args = TypeVarTuple("Args")


async def patiently(make: Callable[[], Awaitable[T]]) -> T:
    """Do something that can safely be done again, until no shortage stands in its way.

    Raises Shortage after SHORTAGE_RETRY_LIMIT seconds, and at once whatever else ``make`` raises.
    """
    deadline = trio.current_time() + SHORTAGE_RETRY_LIMIT
    pause = FIRST_PAUSE
    while True:
        try:
            return await make()
        except Exception as exc:
            shortage = shortage_behind(exc)
            if shortage is None:
                raise
            note(shortage)
            if trio.current_time() + pause > deadline:
                raise shortage from exc
        await trio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


async def run_in_thread(
    work: Callable[[*Args], T],
    *args: *Args,
    limiter: trio.CapacityLimiter | None = None,
    abandon_on_cancel: bool = False,
) -> T:
    """Do as ``trio.to_thread.run_sync``, and wait for a thread where there is none to be had.

    The work is done once at most: a shortage that it meets itself is noted, and raised as it is.
    Raises Shortage where there was no thread for SHORTAGE_RETRY_LIMIT seconds.
    """
    start = partial(
        trio.to_thread.run_sync,
        capture,
        work,
        *args,
        limiter=limiter,
        abandon_on_cancel=abandon_on_cancel,
    )
    result: Outcome[T] = await patiently(start)
    if isinstance(result, Error):
        shortage = shortage_behind(result.error)
        if shortage is not None:
            note(shortage)
    return result.unwrap()
