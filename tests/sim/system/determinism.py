"""Runs that a seed decides wholly: trio shuffles its tasks, but by our dice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import trio
from trio._core import _run as trio_run
from trio.testing import MockClock

_T = TypeVar("_T")


def run_seeded(seed: int, main: Callable[[], Awaitable[_T]]) -> _T:
    """Run a task on a virtual clock that jumps, with every choice of trio's decided by the seed."""
    with _decided_by(seed):
        return trio.run(main, clock=MockClock(autojump_threshold=0))


@contextmanager
def _decided_by(seed: int) -> Iterator[None]:
    # What pytest-trio does for hypothesis; the names are trio's own and private.
    shared = vars(trio_run)
    allowed, state = shared["_ALLOW_DETERMINISTIC_SCHEDULING"], shared["_r"].getstate()
    shared["_ALLOW_DETERMINISTIC_SCHEDULING"] = True
    shared["_r"].seed(seed)
    try:
        yield
    finally:
        shared["_ALLOW_DETERMINISTIC_SCHEDULING"] = allowed
        shared["_r"].setstate(state)
