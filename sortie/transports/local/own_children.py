"""The children of this process that commands have to do with: who outlived the first process of
one is among them.

On Linux, and with this process as child subreaper, the kernel gives the children of a process that
exits to this one before anybody can wait for it (exit_notify in kernel/exit.c): whatever descends
from a process that has exited and was not its own child is below a child of ours. A listing is
exact unless a child is reaped while it is made: the kernel finds its place again by the child that
it showed last, and by counting where that one is gone (get_children_pid in fs/proc/array.c).

Rule 1: a listing is believed only when a later one still holds everybody in it.
Rule 2: the leader is read last: the kernel gives it the children of threads that end, and orphans.
Rule 3: of other threads those are read that start commands: a program may make its child one of
theirs (CLONE_PARENT).
"""

from __future__ import annotations

import os
import threading

_TASKS = "/proc/self/task"
_MOST_LISTINGS = 10
_CHUNK = 1 << 16  # bytes


_starters: set[int] = set()
_lock = threading.Lock()


def note_starter() -> None:
    """Have the children of this thread looked at from now on, as it starts commands."""
    with _lock:
        _starters.add(threading.get_native_id())


def own_children() -> frozenset[int] | None:
    """Return the pids of this process's children, zombies too; None where that is not known.

    Those of threads that start no commands are not among them, as long as these threads live.
    It is not known where the kernel has no such listing, or for a shortage. Takes some 0.02 ms.
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
    leader = os.getpid()
    found: list[bytes] = []
    for thread in _starters.copy() - {leader}:
        try:
            found += _children_of_thread(_TASKS, thread)
        except (FileNotFoundError, ProcessLookupError):
            _forget_if_over(thread)
    return frozenset(found + _children_of_thread(_TASKS, leader))


def _forget_if_over(thread: int) -> None:
    with _lock:  # a later thread of this number notes itself after that
        if not os.path.exists(f"{_TASKS}/{thread}"):
            _starters.discard(thread)


def children_of(tasks: str) -> list[bytes]:
    """Return the pids of the children of the threads in a ``/proc/<pid>/task``.

    Raises OSError where the process is gone, and for a shortage.
    """
    threads = os.listdir(tasks)
    found: list[bytes] = []
    for thread in threads:
        try:
            found += _children_of_thread(tasks, thread)
        except (FileNotFoundError, ProcessLookupError):
            if thread == threads[-1]:
                raise
    return found


def _children_of_thread(tasks: str, thread: int | str) -> list[bytes]:
    return _read(f"{tasks}/{thread}/children").split()


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        said = b""
        while chunk := os.read(fd, _CHUNK):
            said += chunk
        return said
    finally:
        os.close(fd)
