"""Linear's filters, as far as tests ask by them; any other is an error and not ignored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

Item = Mapping[str, Any]


class Unknown(Exception):
    """A filter that is not provided for."""


def matches(item: Item | None, wanted: Mapping[str, Any]) -> bool:
    """Tell whether an item passes a filter; all that stands in one object has to hold."""
    return all(_holds(item, key, condition) for key, condition in wanted.items())


def _holds(item: Item | None, key: str, condition: Any) -> bool:
    match key:
        case "and":
            return all(matches(item, each) for each in condition)
        case "or":
            return any(matches(item, each) for each in condition)
        case "labels":
            return _list_holds(item["label_list"] if item else [], condition)
        case "team" | "state" | "assignee" | "project":
            if "null" in condition:
                return item is not None and (item[key] is None) is condition["null"]
            return matches(item[key] if item else None, condition)
        case "hasBlockedByRelations":
            blocked = any(r["type"] == "blocks" for r in item["inverse"]) if item else False
            return bool(blocked == condition["eq"])
        case "id" | "key" | "name" | "number" | "priority" | "title" | "type" | "updatedAt":
            return item is not None and _compares(item[key], condition)
        case _:
            raise Unknown(key)


def _list_holds(items: list[Item], condition: Mapping[str, Any]) -> bool:
    some = dict(condition.get("some", {})) | {
        key: value for key, value in condition.items() if key not in ("some", "every")
    }
    found = not some or any(matches(item, some) for item in items)
    return found and all(matches(item, condition.get("every", {})) for item in items)


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, other: value == other,
    "neq": lambda value, other: value != other,
    "in": lambda value, other: value in other,
    "nin": lambda value, other: value not in other,
    "gte": lambda value, other: value >= other,
    "lt": lambda value, other: value < other,
    "eqIgnoreCase": lambda value, other: value.lower() == other.lower(),
    "contains": lambda value, other: other in value,
}


def _compares(value: Any, condition: Mapping[str, Any]) -> bool:
    for name, other in condition.items():
        if name not in _COMPARISONS:
            raise Unknown(name)
        given = _comparable(value), _comparable(other)
        if not _COMPARISONS[name](*given):
            return False
    return True


def _comparable(value: Any) -> Any:
    """Return a time as one, so that two spellings of it are the same."""
    if isinstance(value, str) and value[:2] == "20" and "T" in value:
        return datetime.fromisoformat(value)
    return value
