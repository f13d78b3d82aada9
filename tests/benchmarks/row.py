"""What a benchmark is: rows of one table, each measured beside a bare baseline in the same run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol, TypeVar

Count = TypeVar("Count", int, float)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured; ``short`` is for seeing in seconds that it works, not for numbers.

    ``times`` is how many times as often what is repeated is repeated.
    """

    short: bool = False
    times: int = 1

    def of(self, full: Count, short: Count) -> Count:
        """Choose between two numbers."""
        return short if self.short else full

    def often(self, full: int, short: int) -> int:
        """Choose how often something is repeated."""
        return self.of(full, short) * self.times


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What was measured for one row, in its unit; ``also`` are further numbers, by what they are.

    The names of further numbers end with a unit in brackets where it is not the row's.
    ``baseline`` is None where nothing bare does the like.
    """

    ours: float
    baseline: float | None = None
    also: Mapping[str, float] = field(default_factory=dict)


Measure = Callable[[Scale], Mapping[str, Value]]
"""Measures one or more rows; returns their values by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row. Ours has to be at most ``bar``, or at least where more is better; None: no bar.

    Rows that are measured together have the same ``measure``, which then runs once.
    ``is_difference`` says that ours is a difference of two measured numbers: it is less than
    nothing where what is subtracted was held up by chance.
    """

    name: str
    what: str
    unit: str
    baseline: str
    measure: Measure
    bar: float | None = None
    more_is_better: bool = False
    is_difference: bool = False

    def is_met(self, value: Value) -> bool | None:
        """Tell whether the bar is met; None where there is none."""
        if self.bar is None:
            return None
        return value.ours >= self.bar if self.more_is_better else value.ours <= self.bar


def middle(values: list[float]) -> float:
    """Return the median of what was measured, which must be something."""
    assert values, "nothing was measured"
    return median(values)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


def named(rows: Sequence[Named], names: Sequence[str]) -> list[Named]:
    """Return the rows of these names, or of the groups before a dot; no names are all rows.

    Raises KeyError for a name that is neither.
    """
    chosen: list[Named] = []
    for name in names:
        found = [row for row in rows if f"{row.name}.".startswith(f"{name}.")]
        if not found:
            raise KeyError(name)
        chosen += found
    return [row for row in rows if row in chosen] if names else list(rows)
