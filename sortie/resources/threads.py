"""Threads that may be hard to get: whoever needs one waits, and no slot is lost meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

import trio

from sortie.resources.register import note
from sortie.resources.shortages import shortage_behind

PATIENCE = 30.0
"""Seconds for which what a shortage stands in the way of is tried again."""

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two tries: each pause is twice as long as the one before, up to the longest."""

T = TypeVar("T")
Args = TypeVarTuple("Args")


async def patiently(make: Callable[[], Awaitable[T]]) -> T:
    """Do something that can safely be done again, until no shortage stands in its way.

    Raises Shortage after PATIENCE seconds, and at once whatever else ``make`` raises.
    """
    deadline = trio.current_time() + PATIENCE
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
    Raises Shortage where there was no thread for PATIENCE seconds.
    """
    raised: list[Exception] = []

    def attempt() -> T | None:
        try:
            return work(*args)
        except Exception as exc:
            raised.append(exc)
            return None

    answer = await patiently(
        lambda: trio.to_thread.run_sync(
            attempt, limiter=limiter, abandon_on_cancel=abandon_on_cancel
        )
    )
    if raised:
        shortage = shortage_behind(raised[0])
        if shortage is not None:
            note(shortage)
        raise raised.pop()
    return answer  # type: ignore[return-value]  # None only where work returned it
