"""What refusals and failures of HTTP mean as errors of the tracker port, by one table."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2

from sortie.model import LostAnswer, TrackerError, TrackerErrorKind

STATUS_KINDS: Mapping[int, TrackerErrorKind] = {
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

What concerns the tracker and no single issue is CLOSED. A handoff waits for the end of what is
CLOSED or UNAVAILABLE, as long as it takes.
"""

MAYBE_DONE = frozenset({408, 500, 502, 504})
"""Answers after which a change may have been made all the same."""


def failure(
    exc: httpx2.HTTPError | OSError, attempt: str, why: str, *, is_change: bool
) -> TrackerError:
    """Return a failed request as an error of the port; ``why`` is its text without secrets."""
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


def chain_of(exc: BaseException) -> str:
    """Return what an exception and what it was raised from say, the name of one that is silent.

    The library's own text may be empty where the reason, such as a certificate, lies deeper.
    """
    texts: list[str] = []
    found: BaseException | None = exc
    while found is not None and len(texts) < 5:
        text = " ".join(str(found).split())
        if text and not any(text in other for other in texts):
            texts.append(text)
        members = getattr(found, "exceptions", ())  # of a group: one for each address
        found = found.__cause__ or found.__context__ or (members[0] if members else None)
    return ": ".join(texts) or type(exc).__name__
