"""What a check of an agent's adapter comes to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NotKept(AssertionError):
    """An adapter does not keep a promise of the port; the text says what was seen."""


class NotTried(Exception):
    """A check could not be made; the text says why."""


class Status(StrEnum):
    """What became of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one check; ``reason`` is "" where it passed."""

    check: str
    promise: str
    status: Status
    seconds: float
    reason: str = ""


def require(condition: object, seen: str) -> None:
    """Raise NotKept with what was seen, unless a condition holds."""
    if not condition:
        raise NotKept(seen)
