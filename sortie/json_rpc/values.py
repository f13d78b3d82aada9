"""Read values of the other side's that may be missing, or of another type than they should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_NOTHING: Mapping[str, Any] = {}


def mapping(value: object, *path: str) -> Mapping[str, Any]:
    """Return the object at a path of keys, or an empty one."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else _NOTHING


def text(value: object, *path: str) -> str | None:
    """Return the text at a path of keys; None where there is none, or an empty one."""
    found = mapping(value, *path[:-1]).get(path[-1]) if path else value
    return found if isinstance(found, str) and found else None


def items(value: object, *path: str) -> Sequence[Mapping[str, Any]]:
    """Return those members of the list at a path of keys that are objects."""
    found = mapping(value, *path[:-1]).get(path[-1]) if path else value
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def count(value: object, *path: str) -> int | None:
    """Return the whole number at a path of keys, where it is not negative."""
    found = mapping(value, *path[:-1]).get(path[-1]) if path else value
    if not isinstance(found, int) or isinstance(found, bool):
        return None
    return found if 0 <= found < 2**53 else None


def amount(value: object, *path: str) -> float | None:
    """Return the number at a path of keys, where it is finite and not negative."""
    found = mapping(value, *path[:-1]).get(path[-1]) if path else value
    if not isinstance(found, int | float) or isinstance(found, bool):
        return None
    return float(found) if 0 <= found < 2**53 else None


def block_text(content: object) -> str:
    """Return the text of a content block; "" for one that has none, such as an image."""
    block = mapping(content)
    return text(block, "text") or text(block, "resource", "text") or ""
