"""What this process, its children and some further processes spend of the processor."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Seconds of processor time, user and system together."""

    own: float
    children: float

    @property
    def all(self) -> float:
        """Both."""
        return self.own + self.children

    def __sub__(self, before: Spent) -> Spent:
        return Spent(own=self.own - before.own, children=self.children - before.children)

    def __truediv__(self, count: int) -> Spent:
        return Spent(own=self.own / count, children=self.children / count)


def spent(helpers: Iterable[int] = ()) -> Spent:
    """Return what was spent up to now: by all threads of this process, and by its children.

    A child counts when it has been waited for. ``helpers`` are the pids of processes that live
    on and work for this one; they count as children.
    """
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    helping = sum(_on_processor(pid) for pid in helpers)
    return Spent(own=time.process_time(), children=waited.ru_utime + waited.ru_stime + helping)


def _on_processor(pid: int) -> float:
    """Return the seconds that a process of one thread has run."""
    nanoseconds, *_ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(nanoseconds) / 1e9
