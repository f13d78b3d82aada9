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
    except OSError:
        return None
    return None


def _listing() -> frozenset[bytes]:
    leader = str(os.getpid())
    threads = [name for name in os.listdir(_TASKS) if name != leader]
    found: list[bytes] = []
    for name in (*threads, leader):
        try:
            found += _children_of(name)
        except (FileNotFoundError, ProcessLookupError):
            if name == leader:
                raise
    return frozenset(found)


def _children_of(thread: str) -> list[bytes]:
    fd = os.open(f"{_TASKS}/{thread}/children", os.O_RDONLY | os.O_CLOEXEC)
    try:
        said = b""
        while chunk := os.read(fd, _CHUNK):
            said += chunk
        return said.split()
    finally:
        os.close(fd)
