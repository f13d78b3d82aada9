"""What processes spend of the processor.

A process is asked for its CPU clock, which counts all of its threads, those that have ended too,
and none of its children. Children count where their parent has waited for them.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_SCHEDULED = 2  # the kind of clock that says how long a process was on a processor


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


class Spending:
    """What somebody spends while a block lasts; ``used`` is known after it."""

    def __init__(self) -> None:
        self.used = Spent(own=0.0, children=0.0)


@contextmanager
def counted(spent_so_far: Callable[[], Spent]) -> Iterator[Spending]:
    """Count what is spent within the block, by somebody who tells it."""
    spending = Spending()
    before = spent_so_far()
    yield spending
    spending.used = spent_so_far() - before


def spent(helpers: Iterable[int] = ()) -> Spent:
    """Return what was spent up to now: by all threads of this process, and by its children.

    A child counts when it has been waited for. ``helpers`` are the pids of processes that live
    on and work for this one; they count as children.
    """
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    helping = sum(map(clock_of, helpers))
    return Spent(own=time.process_time(), children=waited.ru_utime + waited.ru_stime + helping)


def clock_of(pid: int) -> float:
    """Return the seconds that all threads of a process have run, to the nanosecond (Linux)."""
    return time.clock_gettime((~pid << 3) | _SCHEDULED)


def spent_by(pid: int) -> Spent:
    """Return what a daemon has spent: itself with its helpers, and all other children apart.

    The others are agents, hooks and tools; they count once they have ended, in steps of 10 ms.
    """
    own = children = 0.0
    for member in (pid, *helpers(pid)):
        with suppress(psutil.Error, OSError):  # a helper has ended meanwhile
            own += clock_of(member)
            times = psutil.Process(member).cpu_times()
            children += times.children_user + times.children_system
    return Spent(own=own, children=children)


def helpers(pid: int) -> list[int]:
    """Return the pids of a daemon's children that run the same program as it does itself.

    The init of a run's namespace belongs to the run, and is none. One that is younger than a second
    may be an agent that does not run its own program yet.
    """
    daemon = psutil.Process(pid)
    program, found, old = daemon.exe(), [], time.time() - 1.0
    for child in daemon.children():
        with suppress(psutil.Error, OSError):  # it has ended meanwhile
            is_init = Path(f"/proc/{child.pid}/comm").read_text() == "sortie-init\n"
            if child.exe() == program and child.create_time() < old and not is_init:
                found.append(child.pid)
    return found


def peak_memory(pid: int) -> int:
    """Return the most bytes of resident memory that a process has had (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} has no memory")


def of_child(pid: int) -> float:
    """Wait for a child of this process and return what it has spent, its children included."""
    _, _, used = os.wait4(pid, 0)
    return used.ru_utime + used.ru_stime
