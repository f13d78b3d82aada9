"""How many examples a property is held by, where that is not the profile's number."""

from __future__ import annotations

_full = False


def set_full(full: bool) -> None:
    """Note before tests are collected whether the slow tests were asked for."""
    global _full
    _full = full


def examples(short: int, full: int) -> int:
    """Return how many examples a dear property is held by, without ``--full`` and with it."""
    return full if _full else short
