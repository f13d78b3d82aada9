"""What a daemon did while a row was measured, as far as its clocks and counters tell."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.programs.counted_sortie import CELLS
from tests.benchmarks.spending import spent_by

Sampler = Callable[[int], AbstractContextManager[object]]
"""Looks on at a process of this pid as long as it is entered."""

_SWITCHES = {"voluntary_ctxt_switches": "waits", "nonvoluntary_ctxt_switches": "preemptions"}


@dataclass(slots=True)
class Account:
    """The windows of a measure together: seconds of the daemon's CPU clock and of each thread's,
    how long they lasted, and what was counted within them.

    Waits and preemptions are those of the threads that live from a window's beginning to its end.
    """

    counters: Path | None = None
    clock: float = 0.0
    threads: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    counts: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def window(self, pid: int, sampler: Sampler) -> Iterator[None]:
        """Have a sampler look on within the block, and add what the daemon does in it."""
        with sampler(pid):
            threads, counts = _threads(pid), self._counted()
            clock, began = spent_by(pid).own, time.perf_counter()
            yield
            self.seconds += time.perf_counter() - began
            self.clock += spent_by(pid).own - clock
            after, counted = _threads(pid), self._counted()
        for tid, now in after.items():
            before = threads.get(tid, {})
            run = now["clock"] - before.get("clock", 0.0)
            self.threads[tid] = self.threads.get(tid, 0.0) + run
            if before:
                for kind in _SWITCHES.values():
                    self._count(kind, now[kind] - before[kind])
        for name, amount in counted.items():
            self._count(name, amount - counts[name])

    def _count(self, name: str, amount: float) -> None:
        self.counts[name] = self.counts.get(name, 0.0) + amount

    def _counted(self) -> dict[str, float]:
        if self.counters is None:
            return {}
        numbers = struct.unpack(f"{len(CELLS)}d", self.counters.read_bytes())
        return dict(zip(CELLS, numbers, strict=True))


def _threads(pid: int) -> dict[int, dict[str, float]]:
    """Return the clock, in seconds, and the switches of each living thread, by its id (Linux)."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/task"):
        task = Path(f"/proc/{pid}/task/{name}")
        with suppress(OSError):  # it has ended meanwhile
            clock = int(task.joinpath("schedstat").read_text().split()[0]) / 1e9
            told = {"clock": clock}
            for line in task.joinpath("status").read_text().splitlines():
                key, _, value = line.partition(":")
                if key in _SWITCHES:
                    told[_SWITCHES[key]] = int(value)
            found[int(name)] = told
    return found
