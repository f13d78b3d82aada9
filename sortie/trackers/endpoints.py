"""What settings of trackers over HTTP are checked alike: the endpoint, and the states; pure."""

from __future__ import annotations

from collections.abc import Iterator

from sortie.config.report import Finding
from sortie.config.settings import TrackerSettings
from sortie.documents import Path
from sortie.model.addresses import has_more, is_loopback, split_endpoint

PATH = ("tracker", "endpoint")


def endpoint_findings(endpoint: str, example: str) -> Iterator[Finding]:
    """Yield what is wrong with an address: an error alone, or a warning.

    ``example`` is a right one. No message holds what stands before the host or behind the path.
    """
    if (parts := split_endpoint(endpoint)) is None:
        yield Finding(path=PATH, message=f"needs an address such as {example}")
    elif has_more(endpoint, parts):
        message = (
            "must not hold a name, a password, a question mark or a '#'; "
            "the key belongs in tracker.api_key"
        )
        yield Finding(path=PATH, message=message)
    elif parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        message = "has no https, so that anybody on the way can read the key"
        yield Finding(path=PATH, message=message, severity="warning")


def named_states(tracker: TrackerSettings) -> Iterator[tuple[Path, str]]:
    """Yield the states that the settings name, each with its place."""
    for key in ("active_states", "terminal_states"):
        for place, state in enumerate(getattr(tracker, key)):
            yield ("tracker", key, place), state
    for key in ("in_progress_state", "handoff_state"):
        if (state := getattr(tracker, key)) is not None:
            yield ("tracker", key), state
