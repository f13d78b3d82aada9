"""The order in which people expect names that hold numbers."""

from __future__ import annotations

import re
from functools import lru_cache

_DIGITS = re.compile(r"([0-9]+)")

NaturalKey = tuple[tuple[str | tuple[int, str], ...], str]


@lru_cache(maxsize=16_384)  # the queue is put in order with each poll
def natural_key(name: str) -> NaturalKey:
    """Return what sorts a name by its numbers as numbers: ``TASK-2`` comes before ``TASK-10``."""
    # Texts and numbers take turns, so that a text is never compared with a number. A number is
    # compared by its length first, since one of thousands of digits would be slow to read.
    parts = _DIGITS.split(name)
    numbers = (part.lstrip("0") for part in parts[1::2])
    keys: list[str | tuple[int, str]] = list(parts)
    keys[1::2] = [(len(number), number) for number in numbers]
    return tuple(keys), name
