"""Descriptors that this process has open, for tests of code that may leave none behind."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_descriptor_stays_open() -> Iterator[None]:
    """Fail where something is open after the block that was not before it.

    What an earlier test forgot may be collected, and closed, at any moment: so what is open is
    compared, not how much.
    """
    before = _open()
    yield
    assert _open() - before == Counter()


def _open() -> Counter[str]:
    """Return how often each file, pipe and the like is open."""
    found: Counter[str] = Counter()
    for number in os.listdir("/proc/self/fd"):
        try:
            found[os.readlink(f"/proc/self/fd/{number}")] += 1
        except FileNotFoundError:
            continue  # closed since, as the listing itself is
    return found
