"""How many authentic deliveries are taken in a second."""

from __future__ import annotations

PER_SECOND = 100.0
"""Authentic deliveries of one kind that are taken in a second, in the long run."""

AT_ONCE = 1000
"""Authentic deliveries of one kind that are taken in a burst."""


class Rate:
    """A bucket of tokens, full at first; times are monotonic seconds."""

    def __init__(self) -> None:
        self._tokens = float(AT_ONCE)
        self._at: float | None = None

    def allows(self, now: float) -> bool:
        """Take a token, if there is one."""
        if self._at is not None:
            self._tokens = min(AT_ONCE, self._tokens + (now - self._at) * PER_SECOND)
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
