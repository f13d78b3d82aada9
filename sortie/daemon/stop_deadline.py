"""The one deadline of a daemon's end, and the share of each step.

Rule 1: it begins with the first reason to stop; later reasons do not move it.
Rule 2: each step begins when the one before is over, or at the end of that step's share.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

POLITE = 22.0
"""Seconds for agents, ``after_run`` and what is on its way to the tracker to end by themselves."""

CUT = 4.0
"""Seconds then for workers whose hooks were cut and whose processes get SIGKILL."""

LAST_SWEEP = 1.0
"""Seconds then for a last search for processes, where runs are still under way."""

CLOSE_ALL = 2.5
"""Seconds then for the clients of trackers, connections to hosts, cgroups and the database."""

INTERPRETER = 0.5
"""Seconds then for the end of Python."""

TOTAL = POLITE + CUT + LAST_SWEEP + CLOSE_ALL + INTERPRETER
"""Seconds; a supervisor often kills at 30."""


class StopDeadline:
    """When each step of the end has to be over, in trio's time; inf before anything has begun."""

    def __init__(self) -> None:
        self._at = math.inf
        self._begun = trio.Event()

    def begin(self) -> None:
        """Count from now on, unless that has begun."""
        if not self._begun.is_set():
            self._at = trio.current_time()
            self._begun.set()

    @property
    def polite_until(self) -> float:
        """When politeness ends: hooks are cut then, and processes get no more grace."""
        return self._at + POLITE

    @property
    def cut_until(self) -> float:
        """When no worker is waited for any more."""
        return self.polite_until + CUT

    @property
    def closed_until(self) -> float:
        """When everything has to be closed."""
        return self.cut_until + LAST_SWEEP + CLOSE_ALL

    def left(self) -> float:
        """Return the seconds until the process has to be gone."""
        return max(0.0, self.closed_until + INTERPRETER - trio.current_time())

    @asynccontextmanager
    async def enforced(self, leave: Callable[[], object]) -> AsyncIterator[None]:
        """Call ``leave`` where the block is not left in time for everything to be closed."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._enforce, leave)
            yield
            nursery.cancel_scope.cancel()

    async def _enforce(self, leave: Callable[[], object]) -> None:
        await self._begun.wait()
        await trio.sleep_until(self.closed_until)
        leave()
