"""Makes this process the one to which orphans among its descendants come back."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37


def become_subreaper() -> bool:
    """Adopt every descendant whose parent dies, from now on; return whether that is so.

    Call it once, before anything is started. Only Linux has this; elsewhere what leaves its
    session can be found by its cookie alone.
    """
    prctl = _prctl()
    return prctl is not None and prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def is_subreaper() -> bool:
    """Tell whether this process adopts its orphans."""
    prctl = _prctl()
    if prctl is None:
        return False
    answer = ctypes.c_int()
    return prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0) == 0 and answer.value == 1


@cache
def _prctl() -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return None
