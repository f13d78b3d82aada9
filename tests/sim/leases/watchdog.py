"""The watchdog beside a daemon: it kills the daemon where a lease is not renewed in time."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import trio

from tests.sim.leases.clocks import Clock
from tests.sim.leases.freezing import FreezablePlug

LOOK = 0.25
"""Seconds between two looks of the watchdog at its clock, at most."""


class SimWatchdog:
    """A process of its own: a stopped daemon does not stop it, a sleeping machine does.

    ``machine`` is what freezes with the whole machine.
    """

    def __init__(
        self, clock: Clock, machine: FreezablePlug, draw: Random, kill: Callable[[], object]
    ) -> None:
        self._clock = clock
        self._machine = machine
        self._draw = draw
        self._kill = kill
        self._deadlines: dict[str, float] = {}
        self._told = trio.Event()

    def extend(self, workflow: str, kill_at: float) -> None:
        """Kill the daemon at this time of the boot clock, unless told otherwise before."""
        self._deadlines[workflow] = kill_at
        self._told.set()

    def clear(self, workflow: str) -> None:
        """The daemon does not lead a workflow any more."""
        self._deadlines.pop(workflow, None)
        self._told.set()

    async def watch(self) -> None:
        """Wait for a deadline that passes, and kill."""
        while True:
            self._told = trio.Event()
            due = min(self._deadlines.values(), default=math.inf)
            with trio.move_on_at(self._clock.true(due)):
                await self._told.wait()
            if self._machine.is_frozen:
                await self._machine.awake()
            if due < math.inf and not self._told.is_set():
                await trio.sleep(self._draw.uniform(0, LOOK))
            if min(self._deadlines.values(), default=math.inf) <= self._clock.boot() + 1e-6:
                self._kill()
                return
