"""How much an object holds: what grows with each run that is over is never given back."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Set
from typing import Any


def held(thing: object) -> int:
    """Return how many entries all containers have that are reached from an object of ours.

    A deque with a bound counts by that: it may fill.
    """
    return _held(thing, set())


def _held(thing: Any, seen: set[int]) -> int:
    if id(thing) in seen or isinstance(thing, str | bytes | int | float | type(None)):
        return 0
    seen.add(id(thing))
    match thing:
        case Mapping():
            return len(thing) + sum(_held(value, seen) for value in thing.values())
        case deque() if thing.maxlen is not None:
            return thing.maxlen
        case list() | tuple() | deque() | Set():
            return len(thing) + sum(_held(value, seen) for value in thing)
    if not type(thing).__module__.startswith("sortie"):
        return 0
    names = {name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())}
    values = [getattr(thing, name) for name in names if hasattr(thing, name)]
    return sum(_held(value, seen) for value in (*values, *getattr(thing, "__dict__", {}).values()))
