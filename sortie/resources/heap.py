"""One heap for all threads of this process, where the C library is glibc.

glibc gives threads heaps of their own, up to eight for each core, and what a thread has freed in
its heap serves no other one. Here a burst of starts wakes dozens of threads, of which mostly one
at a time runs Python: they would hardly ever wait for the one heap.
"""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8


def share_heap() -> bool:
    """Have all threads use one heap, and return whether that is so.

    To be called before there is a second thread: a heap that is there stays in use.
    """
    try:
        libc = ctypes.CDLL(None)
        if not hasattr(libc, "gnu_get_libc_version"):
            return False
        return bool(libc.mallopt(_M_ARENA_MAX, 1))
    except (OSError, AttributeError):
        return False
