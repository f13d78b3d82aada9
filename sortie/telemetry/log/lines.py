"""What a log line is, before it is stamped, cleaned and rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One log event; ``event`` is a stable dotted name, ``values`` come in the order shown."""

    level: Level
    event: str
    values: Mapping[str, object]


Lines = tuple[Line, ...]


def line(level: Level, event: str, **values: object) -> Line:
    """Return a line without what is unknown: values that are None are left out."""
    known = {key: value for key, value in values.items() if value is not None}
    return Line(level=level, event=event, values=known)


def seconds(value: float | None) -> float | None:
    """Return a duration as people read it, to the millisecond."""
    return None if value is None else round(value, 3)
