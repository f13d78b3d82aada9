"""The children of this process: who outlived the first process of a command is one of them.

On Linux, and with this process as child subreaper, the kernel gives the children of a process that
exits to this one before anybody can wait for it (exit_notify in kernel/exit.c): whatever descends
from a process that has exited and was not its own child is below a child of ours. A listing is
exact unless a child is reaped while it is made: the kernel finds its place again by the child that
it showed last, and by counting where that one is gone (get_children_pid in fs/proc/array.c).

Rule 1: a listing is believed only when a later one still holds everybody in it.
Rule 2: the leader is read last: the kernel gives it the children of threads that end, and orphans.
"""

from __future__ import annotations

import os

_TASKS = "/proc/self/task"
_MOST_LISTINGS = 10
_CHUNK = 1 << 16  # bytes


def own_children() -> frozenset[int] | None:
    """Return the pids of this process's children, zombies too; None where that is not known.

    It is not known where the kernel has no such listing, or for a shortage. Takes some 0.1 ms.
    """
    try:
        before = _listing()
        for _ in range(_MOST_LISTINGS):
            after = _listing()
            if before == after or before <= after:
                return frozenset(int(pid) for pid in before)
            before = after
    except (OSError, ValueError):
        return None
    return None


def _listing() -> frozenset[bytes]:
    return frozenset(children_of(_TASKS, os.getpid()))


def children_of(tasks: str, leader: int | None = None) -> list[bytes]:
    """Return the pids of the children of the threads in a ``/proc/<pid>/task``, the leader's last.

    Raises OSError where the process is gone, and for a shortage.
    """
    threads = os.listdir(tasks)
    if leader is not None:
        threads.remove(str(leader))
        threads.append(str(leader))
    found: list[bytes] = []
    for thread in threads:
        try:
            found += _read(f"{tasks}/{thread}/children").split()
        except (FileNotFoundError, ProcessLookupError):
            if thread == threads[-1]:
                raise
    return found


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        said = b""
        while chunk := os.read(fd, _CHUNK):
            said += chunk
        return said
    finally:
        os.close(fd)
