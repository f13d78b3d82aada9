"""What a daemon with a lease sees to when it changes something over HTTP.

Rule 1: nothing is changed once the lease is over, also where a connection had to be made first,
and the process was stopped meanwhile.
Rule 2: what was sent, and not taken by the other side within some seconds, is never sent again by
the kernel: else a change could arrive when another daemon has looked for it in vain already.
Rule 3: the lease knows of a change whose answer was not heard: it is not given back before that has
arrived, or never will.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sortie.model import LostAnswer, TrackerError, TrackerErrorKind
from sortie.resources.lease import LeaseLost, current_lease, require_lease
from sortie.resources.untaken import SocketOptions, give_up_untaken, traced
from sortie.scheduler.lease_times import AHEAD, UNTAKEN_LIMIT


def require_right_to_change(attempt: str) -> None:
    """Raise TrackerError where the lease is over."""
    try:
        require_lease(AHEAD)
    except LeaseLost as exc:
        raise TrackerError(TrackerErrorKind.UNAVAILABLE, f"{attempt}: {exc}") from exc


def extensions(attempt: str, *, is_change: bool) -> dict[str, Any]:
    """Return what the client is told with a request. Raises TrackerError for a change where the
    lease is over."""
    if is_change:
        require_right_to_change(attempt)
    if current_lease() is None:
        return {}
    return {"trace": traced(_bound, _require) if is_change else traced(_bound)}


def _bound(made: SocketOptions) -> None:
    give_up_untaken(made, UNTAKEN_LIMIT)


def _require() -> None:
    """Raise LeaseLost where the lease is over, or nearly."""
    require_lease(AHEAD)


@contextmanager
def sending(attempt: str, *, is_change: bool) -> Iterator[None]:
    """Send a request within the block, and hear its answer; a change that is not answered, for
    whatever reason, is left to the lease. Raises TrackerError where the lease was over right before
    it was sent."""
    lease = current_lease() if is_change else None
    settled = False
    try:
        yield
        settled = True
    except TrackerError as exc:
        settled = not isinstance(exc, LostAnswer)  # it was refused, or never sent
        raise
    except LeaseLost as exc:
        settled = True
        raise TrackerError(TrackerErrorKind.UNAVAILABLE, f"{attempt}: {exc}") from exc
    finally:
        if lease is not None and not settled:
            lease.leave_unanswered(UNTAKEN_LIMIT)
