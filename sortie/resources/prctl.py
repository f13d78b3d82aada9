"""prctl(2), which Python does not have."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache


@cache
def prctl() -> Callable[..., int] | None:
    """Return the function, which gives 0 for success; None where there is none."""
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return None
