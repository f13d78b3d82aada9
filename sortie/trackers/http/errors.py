"""What refusals and failures of HTTP mean as errors of the tracker port, by one table."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2

from sortie.model import TrackerError, TrackerErrorKind

KINDS: Mapping[int, TrackerErrorKind] = {
    400: TrackerErrorKind.INVALID,
    401: TrackerErrorKind.CLOSED,
    402: TrackerErrorKind.CLOSED,
    403: TrackerErrorKind.PERMISSION,
    404: TrackerErrorKind.NOT_FOUND,
    409: TrackerErrorKind.CONFLICT,
    410: TrackerErrorKind.NOT_FOUND,
    412: TrackerErrorKind.CONFLICT,
    413: TrackerErrorKind.INVALID,
    414: TrackerErrorKind.INVALID,
    415: TrackerErrorKind.INVALID,
    422: TrackerErrorKind.INVALID,
    502: TrackerErrorKind.CLOSED,
    503: TrackerErrorKind.CLOSED,
    504: TrackerErrorKind.CLOSED,
}
"""What a status means where the adapter does not know better; any other may pass.

What concerns the tracker and no single issue is CLOSED: a handoff waits for it as long as it takes.
"""

MAYBE_DONE = frozenset({408, 500, 502, 504})
"""Answers after which a change may have been made all the same."""


class LostAnswer(TrackerError):
    """A change was sent, and nobody knows whether it was made: look before it is tried again."""


def failure(
    exc: httpx2.HTTPError | OSError, attempt: str, clean: str, *, is_change: bool
) -> TrackerError:
    """Return a failed request as an error of the port; ``clean`` is its text without secrets."""
    why = clean or type(exc).__name__
    never_sent = (
        httpx2.ConnectError,
        httpx2.ConnectTimeout,
        httpx2.PoolTimeout,
        httpx2.UnsupportedProtocol,
        httpx2.ProxyError,
        httpx2.LocalProtocolError,
    )
    if isinstance(exc, never_sent):
        return TrackerError(TrackerErrorKind.CLOSED, f"{attempt}: it cannot be reached: {why}")
    kind = LostAnswer if is_change else TrackerError
    return kind(TrackerErrorKind.UNAVAILABLE, f"{attempt}: the answer did not come: {why}")
