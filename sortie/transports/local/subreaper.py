"""Makes this process the one to which orphans among its descendants come back."""

from __future__ import annotations

import ctypes

from sortie.resources.prctl import prctl

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37


def become_subreaper() -> bool:
    """Adopt every descendant whose parent dies, from now on; return whether that is so.

    Call it once, before anything is started. Only Linux has this; elsewhere what leaves its
    session can be found by its cookie alone.
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
