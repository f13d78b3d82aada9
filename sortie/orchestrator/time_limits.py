"""How long a request to the tracker may take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

import trio

PROGRESS_TIMEOUT = 60.0
"""Seconds without an answer or progress after which a request is given up."""

REQUEST_TIME_LIMIT = 600.0
"""Seconds after which a request is given up, whatever progress it makes."""

_T = TypeVar("_T")

_progress_scope: ContextVar[trio.CancelScope | None] = ContextVar("_progress_scope", default=None)


def progress() -> None:
    """Report progress of this task's request: PROGRESS_TIMEOUT begins anew."""
    if (scope := _progress_scope.get()) is not None:
        scope.deadline = trio.current_time() + PROGRESS_TIMEOUT


async def bounded(request: Callable[[], Awaitable[_T]]) -> _T:
    """Wait for an answer as long as ``progress`` is called in time. Raises TooSlowError."""
    with trio.fail_after(REQUEST_TIME_LIMIT), trio.fail_after(PROGRESS_TIMEOUT) as scope:
        token = _progress_scope.set(scope)
        try:
            return await request()
        finally:
            _progress_scope.reset(token)
