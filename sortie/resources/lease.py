"""The right of this process to act for a workflow, which other daemons may take over.

A workflow whose database is a file has none: its lock on the machine is enough.
Times are those of CLOCK_BOOTTIME, which goes on while the machine sleeps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar

from sortie.model import StoreError

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LeaseLost(StoreError):
    """This process may not act for a workflow any more."""


def boot_time() -> float:
    """Return the seconds since the machine was started, those of its sleep included."""
    return time.clock_gettime(_CLOCK)


class Lease:
    """The lease of one workflow. ``token`` is greater than that of each lease before it; ``holder``
    names this process for people, as HOST:PID; ``valid_until`` moves with each renewal, and is
    a time in the past once the lease is over. ``refuse`` is called for each write that a newer
    lease has refused. ``scope`` tells the workflow from those of other databases. Until
    ``unanswered_until`` a change may arrive that was sent, and whose answer was not heard."""

    def __init__(
        self,
        workflow: str,
        token: int,
        holder: str,
        valid_until: float,
        refuse: Callable[[], object] = lambda: None,
        scope: str | None = None,
    ) -> None:
        self.workflow = workflow
        self.token = token
        self.holder = holder
        self.valid_until = valid_until
        self.refuse = refuse
        self.scope = workflow if scope is None else scope
        self.unanswered_until = -math.inf

    @property
    def is_valid(self) -> bool:
        """Whether this process may act; may be asked in any thread."""
        return boot_time() < self.valid_until

    def leave_unanswered(self, seconds: float) -> None:
        """Know of a change that was sent, whose answer is waited for no more, and which may arrive
        within so many seconds."""
        self.unanswered_until = max(self.unanswered_until, boot_time() + seconds)

    def require(self, ahead: float = 0.0) -> None:
        """Raise LeaseLost where the lease is over, or will be in so many seconds."""
        if boot_time() + ahead >= self.valid_until:
            raise LeaseLost(
                f"the lease of workflow {self.workflow} (token {self.token}) is over: it was not"
                " renewed in time, so another daemon may lead the workflow"
            )


LEASE: ContextVar[Lease | None] = ContextVar("LEASE", default=None)
"""The lease of the workflow that the present task works for."""


def current_lease() -> Lease | None:
    """Return the lease of the workflow that this task works for, None where it needs none."""
    return LEASE.get()


def require_lease(ahead: float = 0.0) -> None:
    """Raise LeaseLost where this task works for a workflow whose lease is over, or will be in so
    many seconds."""
    lease = LEASE.get()
    if lease is not None:
        lease.require(ahead)
