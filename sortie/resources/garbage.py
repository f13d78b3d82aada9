"""When Python searches for objects that only hold each other: not while a process starts or ends.

It looks at the young ones after every 700 more objects, and at all of them now and then. Nearly all
that a start makes stays, modules above all, so that these looks find next to nothing; at the end
of a process its memory is given back anyway. A run makes some 400 objects that stay as long as it
does, so that a thousand starts would have all objects looked at again and again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_OF_A_START = 200_000
"""More objects than a command has made when it begins to work."""

DAEMON_THRESHOLDS = (10_000, 10, 10)
"""The young ones are looked at after 10,000 more objects, all after a million at the soonest."""


@contextmanager
def few_searches() -> Iterator[None]:
    """Search seldom from here on, and not at all when the process ends after the block."""
    usual = gc.get_threshold()
    gc.set_threshold(OBJECTS_OF_A_START, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.freeze()


def search_as_daemon() -> None:
    """Search as suits a daemon that has started, and no more for what is there now.

    What cannot be reached is freed before.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*DAEMON_THRESHOLDS)
