"""How long to wait before a tracker is asked again that is in an outage."""

from __future__ import annotations

from sortie.model import TrackerError

SHORTEST_PAUSE, LONGEST_PAUSE = 10.0, 300.0
"""Seconds; the pauses double from the one to the other."""


class OutagePauses:
    """The pauses between tries of one change."""

    def __init__(self) -> None:
        self._pause = SHORTEST_PAUSE

    def after(self, error: TrackerError) -> float:
        """Return the seconds to wait after this failure: what the tracker says, else a pause."""
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
        return pause if error.retry_after is None else error.retry_after
