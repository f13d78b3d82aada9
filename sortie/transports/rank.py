"""The order in which runs that wait for a host are served: the run that began first goes first.

A run takes a dozen steps on a host before its agent starts. Were each step a newcomer, all runs
would advance together, and on a slow host none would reach its agent for a long time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

FIRST = 0
"""The rank of what others wait for: it goes before all of them."""

_ranks = itertools.count(FIRST + 1)
_rank: ContextVar[int | None] = ContextVar("rank", default=None)


@contextmanager
def ranked() -> Iterator[None]:
    """Have all that this block asks of hosts, and the tasks that it starts, be of one rank."""
    token = _rank.set(next(_ranks))
    try:
        yield
    finally:
        _rank.reset(token)


def rank() -> int:
    """Return the rank of this task, of which the lower goes first; a task without a rank gets a new
    one, behind all others."""
    own = _rank.get()
    return next(_ranks) if own is None else own
