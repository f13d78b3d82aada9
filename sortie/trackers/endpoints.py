"""What settings of trackers over HTTP are checked alike: the endpoint, and the states; pure."""

from __future__ import annotations

from collections.abc import Iterator

from sortie.config.endpoints import address_findings
from sortie.config.report import Finding
from sortie.config.settings import TrackerSettings
from sortie.documents import Path

PATH = ("tracker", "endpoint")


def endpoint_findings(endpoint: str, example: str) -> Iterator[Finding]:
    """Yield what is wrong with ``tracker.endpoint``; ``example`` is a right one."""
    return address_findings(PATH, endpoint, example, "tracker.api_key")


def named_states(tracker: TrackerSettings) -> Iterator[tuple[Path, str]]:
    """Yield the states that the settings name, each with its place."""
    for key in ("active_states", "terminal_states"):
        for place, state in enumerate(getattr(tracker, key)):
            yield ("tracker", key, place), state
    for key in ("in_progress_state", "handoff_state"):
        if (state := getattr(tracker, key)) is not None:
            yield ("tracker", key), state
