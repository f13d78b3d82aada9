"""Attributes of this process that Linux sets by prctl(2), which Python does not have."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37


@cache
def prctl() -> Callable[..., int] | None:
    """Return the function, which gives 0 for success; None where there is none."""
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return None


def forbid_inspection() -> bool:
    """Let nobody but root trace this process, read its memory or environment, or dump its core.

    Return whether that is so. Agents run as the same user: without this they could read every
    credential that the daemon has and hides from them. Programs that this process starts are free
    of it, as executing a program ends it (prctl(2), PR_SET_DUMPABLE).
    """
    call = prctl()
    return call is not None and call(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0


def become_subreaper() -> bool:
    """Adopt every descendant whose parent dies, from now on; return whether that is so.

    Call it once, before any program is started. Where it is not to be had, a process that leaves
    its session can be found by its cookie alone.
    """
    call = prctl()
    return call is not None and call(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def is_subreaper() -> bool:
    """Tell whether this process adopts its orphans."""
    call = prctl()
    if call is None:
        return False
    answer = ctypes.c_int()
    return call(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0) == 0 and answer.value == 1
