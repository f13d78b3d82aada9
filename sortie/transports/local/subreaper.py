"""Makes this process the one to which orphans among its descendants come back."""

from __future__ import annotations

import ctypes
import sys

_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Adopt every descendant whose parent dies, from now on; return whether that is so.

    Call it once, before anything is started. Only Linux has this; elsewhere what leaves its
    session can be found by its cookie alone.
    """
    if sys.platform != "linux":
        return False
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return False
    return bool(prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
