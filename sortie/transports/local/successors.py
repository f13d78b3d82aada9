"""Kills processes of runs that hand over to a successor faster than all processes are looked at.

A look at all processes takes milliseconds, and many more where other programs have work to do; what
forks and exits all the time is gone when it is to be signalled. Here only processes are looked at
that are new, and each is killed at once.

Rule: a process is held by a descriptor before it is looked at, so that the signal reaches this one.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Collection
from contextlib import suppress

from sortie.model import RunId
from sortie.transports.local.process_table import ProcessInfo, pids_now, read_whole

ENOUGH = 0.05
"""Seconds of processor time after the last kill: dozens of looks at what is new."""
LONGEST = 5.0
"""Seconds after which it is over, whatever happens."""


def kill_successors(run_ids: Collection[RunId]) -> list[ProcessInfo]:
    """Kill processes with these cookies that begin from now on, until there are no more of them.

    Return those that got the signal. Blocks for ``LONGEST`` at most.
    """
    killed: list[ProcessInfo] = []
    if sys.platform != "linux":
        return killed
    known, last = set(pids_now()), time.monotonic() + LONGEST
    until = time.thread_time() + ENOUGH
    while time.thread_time() < until and time.monotonic() < last:
        fresh = set(pids_now()) - known
        known |= fresh
        for pid in fresh:
            with suppress(OSError):
                seen = _kill(pid, run_ids)
                if seen is not None:
                    killed.append(seen)
                    until = time.thread_time() + ENOUGH
    return killed


def is_gone(seen: ProcessInfo) -> bool:
    """Tell whether a process has ended since it was looked at, as one that handed over has."""
    try:
        now = read_whole(seen.pid)
    except OSError:
        return False
    return now is None or now.dead or now.identity != seen.identity


def _kill(pid: int, run_ids: Collection[RunId]) -> ProcessInfo | None:
    pidfd = os.pidfd_open(pid)
    try:
        seen = read_whole(pid)
        if seen is None or seen.dead or seen.cookie not in run_ids:
            return None
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        return seen
    finally:
        os.close(pidfd)
