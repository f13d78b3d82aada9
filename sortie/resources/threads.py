"""Threads that may be hard to get: whoever needs one waits, and no slot is lost meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar, TypeVarTuple

import trio
from outcome import Error, Outcome, Value, capture

from sortie.resources.register import note
from sortie.resources.shortages import shortage_behind
from sortie.resources.work_queue import current_work_queue

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
    Other work goes first that was asked for before, as long as none of it blocks.
    It sees no context variables, and asks ``check_cancelled`` instead of ``trio.from_thread``.
    Raises Shortage where there was no thread for PATIENCE seconds.
    """
    limiter = limiter or trio.to_thread.current_default_thread_limiter()
    call = _Call(partial(work, *args), limiter, abandon_on_cancel)
    result = await patiently(call.run)
    if isinstance(result, Error):
        shortage = shortage_behind(result.error)
        if shortage is not None:
            note(shortage)
    return result.unwrap()


def check_cancelled() -> None:
    """Raise trio.Cancelled where the task that waits for this thread's work was cancelled."""
    raise_cancel = _here.call.raise_cancel
    if raise_cancel is not None:
        raise_cancel()


class _Here(threading.local):
    """The call that this thread works for."""

    call: _Call[Any]


_here = _Here()


class _Call(Generic[T]):
    """One piece of work for the queue.

    ``trio.to_thread.run_sync`` wakes a thread for each, goes through trio's loop once more for a
    place that is free, names the thread anew, copies the context and lets the thread call back.
    """

    def __init__(
        self, work: Callable[[], T], limiter: trio.CapacityLimiter, abandon_on_cancel: bool
    ) -> None:
        self.raise_cancel: Callable[[], NoReturn] | None = None
        self._work = work
        self._limiter = limiter
        self._abandon = abandon_on_cancel
        self._task: trio.lowlevel.Task | None = None
        self._token = trio.lowlevel.current_trio_token()
        self._queue = current_work_queue()

    async def run(self) -> Outcome[T]:
        """Return what came of the work. Raises RuntimeError where there is no thread."""
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            self._limiter.acquire_on_behalf_of_nowait(self)
        except trio.WouldBlock:
            await self._limiter.acquire_on_behalf_of(self)
        self._task = trio.lowlevel.current_task()
        self._queue.add(self)
        result: Outcome[T] = await trio.lowlevel.wait_task_rescheduled(self._abort)
        return result

    def perform(self) -> None:
        """Do the work, in a thread."""
        _here.call = self
        result = capture(self._work)
        del _here.call
        with suppress(trio.RunFinishedError):  # nobody waits any more
            self._token.run_sync_soon(self._return, Value(result))

    def refuse(self, why: Exception) -> None:
        """Have ``run`` raise why there is no thread, soon."""
        self._token.run_sync_soon(self._return, Error(why))

    def _return(self, result: Outcome[Outcome[T]]) -> None:
        self._limiter.release_on_behalf_of(self)
        if self._task is not None:
            trio.lowlevel.reschedule(self._task, result)

    def _abort(self, raise_cancel: Callable[[], NoReturn]) -> trio.lowlevel.Abort:
        if self._queue.withdraw(self):
            self._limiter.release_on_behalf_of(self)
            return trio.lowlevel.Abort.SUCCEEDED
        self.raise_cancel = raise_cancel
        if not self._abandon:
            return trio.lowlevel.Abort.FAILED
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED
