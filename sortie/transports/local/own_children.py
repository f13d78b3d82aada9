"""The children of this process: what outlived the first process of a command is among them or
below one of them.

On Linux, and with this process as child subreaper, the kernel gives the children of a process that
exits to this one before it can be waited for (exit_notify in kernel/exit.c): whatever descends
from a process that has exited and was not its own child is below a child of ours. A listing is
exact unless a child is reaped while it is made: the kernel finds its place again by the child that
it showed last, and by counting where that one is gone (get_children_pid in fs/proc/array.c).

All of them are children of the leader: the kernel gives it orphans, and the programs of runs come
from the fork server as orphans, too.

Rule: a listing is believed only when a later one still holds all processes in it.
"""

from __future__ import annotations

import os

_TASKS = "/proc/self/task"
_LISTING_TRIES = 10
_CHUNK = 1 << 16  # bytes


def own_children() -> frozenset[int] | None:
    """Return the pids of this process's children, zombies too; None where that is not known.

    Those of other threads than the leader are not among them, as long as these threads live.
    It is not known where the kernel has no such listing, or for a shortage. Takes some 0.02 ms.
    """
    try:
        before = _listing()
        for _ in range(_LISTING_TRIES):
            after = _listing()
            if before == after or before <= after:
                return frozenset(int(pid) for pid in before)
            before = after
    except (OSError, ValueError):
        return None
    return None


def _listing() -> frozenset[bytes]:
    return frozenset(_read(f"{_TASKS}/{os.getpid()}/children").split())


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        said = b""
        while chunk := os.read(fd, _CHUNK):
            said += chunk
        return said
    finally:
        os.close(fd)
