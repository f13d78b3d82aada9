"""What settings of trackers over HTTP are checked alike: the endpoint, and the states; pure.

The HTTP client takes the same addresses, by ``is_endpoint``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from sortie.config.report import Finding
from sortie.config.settings import TrackerSettings
from sortie.documents import Path
from sortie.model.addresses import is_loopback

PATH = ("tracker", "endpoint")

_HOST = re.compile(r"\[[0-9A-Fa-f:.]+\]|[\w-]+(\.[\w-]+)*\.?")


def endpoint_findings(endpoint: str, example: str) -> Iterator[Finding]:
    """Yield what is wrong with an address: an error alone, or a warning.

    ``example`` is a right one. No message holds what stands before the host or behind the path.
    """
    if (parts := split_endpoint(endpoint)) is None:
        yield Finding(path=PATH, message=f"needs an address such as {example}")
    elif _has_more(endpoint, parts):
        message = (
            "must not hold a name, a password, a question mark or a '#'; "
            "the key belongs in tracker.api_key"
        )
        yield Finding(path=PATH, message=message)
    elif parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        message = "has no https, so that anybody on the way can read the key"
        yield Finding(path=PATH, message=message, severity="warning")


def is_endpoint(address: str) -> bool:
    """Tell whether an address is that of a server, perhaps with a path, and nothing else."""
    parts = split_endpoint(address)
    return parts is not None and not _has_more(address, parts)


def named_states(tracker: TrackerSettings) -> Iterator[tuple[Path, str]]:
    """Yield the states that the settings name, each with its place."""
    for key in ("active_states", "terminal_states"):
        for place, state in enumerate(getattr(tracker, key)):
            yield ("tracker", key, place), state
    for key in ("in_progress_state", "handoff_state"):
        if (state := getattr(tracker, key)) is not None:
            yield ("tracker", key), state


def split_endpoint(endpoint: str) -> SplitResult | None:
    """Return the parts of an address of a server, None where it is none."""
    if any(char.isspace() or not char.isprintable() for char in endpoint):
        return None
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError:
        return None
    place = parts.netloc.rpartition("@")[2]
    host = place if place.endswith("]") else re.sub(r":\d*$", "", place)
    if parts.scheme not in ("http", "https") or port == 0 or not _HOST.fullmatch(host):
        return None
    return parts


def _has_more(endpoint: str, parts: SplitResult) -> bool:
    """Tell whether an address has a user, a query or a fragment, be it an empty one."""
    return "@" in parts.netloc or "?" in endpoint or "#" in endpoint
