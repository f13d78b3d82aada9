"""What is looked at again and again, and what it means that it stays flat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """Something that is measured; ``share`` of it and ``slack``, in its unit, may be added to it
    between the second quarter and the last without being growth."""

    name: str
    unit: str
    share: float
    slack: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a quantity went: medians of the second and of the last quarter, and the most of all."""

    quantity: Quantity
    second: float
    last: float
    most: float

    @property
    def is_flat(self) -> bool:
        """Whether the last quarter is no higher than the second, but for what is allowed.

        The first quarter is left out: caches fill, and pools reach their size. The highest look
        is not judged, since it depends on when somebody looked.
        """
        allowed = self.second * (1.0 + self.quantity.share) + self.quantity.slack
        return self.last <= allowed

    def __str__(self) -> str:
        verdict = "flat" if self.is_flat else "GROWS"
        return (
            f"{self.quantity.name}: {verdict}: second quarter {self.second:,.0f}, last"
            f" {self.last:,.0f}, most {self.most:,.0f} {self.quantity.unit}".rstrip()
        )


WRITE_AHEAD_LOG = Quantity(name="write-ahead log", unit="bytes", share=0.25, slack=0.0)
"""The size of its file, which is the longest that it ever was: SQLite begins it anew once it has a
thousand pages, and a commit that comes while somebody reads may still be added. One that is never
begun anew is more than twice as long in the last quarter as in the second."""

Look = Mapping[str, float]
"""What was seen at one moment, by the names of quantities."""


def courses(quantities: Sequence[Quantity], looks: Sequence[Look]) -> list[Course]:
    """Return how each quantity went; there must be at least eight looks, evenly over the time."""
    assert len(looks) >= 8, f"{len(looks)} looks tell nothing"
    quarter = len(looks) // 4
    found = []
    for quantity in quantities:
        seen = [look[quantity.name] for look in looks]
        found.append(
            Course(
                quantity=quantity,
                second=median(seen[quarter : 2 * quarter]),
                last=median(seen[-quarter:]),
                most=max(seen),
            )
        )
    return found
