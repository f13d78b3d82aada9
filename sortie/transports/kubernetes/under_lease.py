"""What a daemon with a lease sees to when it asks an API server to change something.

Rule 1: nothing is changed once the lease is over, also where a connection had to be made first.
Rule 2: what the server has not taken within some seconds never arrives, nor does what was sent on a
link to a pod when the daemon has ended.
Rule 3: the lease knows of a change whose answer was not heard: it is not given back before that has
arrived, or never will. A PUT names the version that it replaces, so it may arrive late.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from sortie.resources.lease import LeaseLost, current_lease, require_lease
from sortie.resources.untaken import SocketOptions, discard_at_close, give_up_untaken, traced
from sortie.scheduler.lease_times import AHEAD, LINK_UNTAKEN_LIMIT, UNTAKEN_LIMIT
from sortie.transports.kubernetes.api_errors import ApiRefusal, PutOffError

if TYPE_CHECKING:
    import httpx


async def bound_request(request: httpx.Request) -> None:
    """Bound the connection of a request that is about to be sent; one that changes something raises
    LeaseLost where the lease is over by then."""
    if current_lease() is not None:
        bound = partial(give_up_untaken, seconds=UNTAKEN_LIMIT)
        is_change = request.method != "GET"
        required = (partial(require_lease, AHEAD),) if is_change else ()
        request.extensions["trace"] = traced(bound, *required)


def link_extensions() -> dict[str, Any]:
    """Return what a client is told with the request for a link to a pod."""
    return {} if current_lease() is None else {"trace": traced(_bound_link)}


def _bound_link(made: SocketOptions) -> None:
    give_up_untaken(made, LINK_UNTAKEN_LIMIT)
    discard_at_close(made)


@contextmanager
def sending(method: str) -> Iterator[None]:
    """Send a request within the block, and hear its answer; see rule 3. Raises LeaseLost for a
    change when the lease is over."""
    if method != "GET":
        require_lease(AHEAD)
    lease = None if method in ("GET", "PUT") else current_lease()
    settled = False
    try:
        yield
        settled = True
    except (LeaseLost, ApiRefusal, PutOffError):
        settled = True
        raise
    finally:
        if lease is not None and not settled:
            lease.leave_unanswered(UNTAKEN_LIMIT)
