"""The wish of this process to lead one workflow, and how it stands.

The keeper's thread changes it, and tasks of the loop wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import trio

from sortie.resources.lease import Lease, boot_time
from sortie.scheduler import lease_times
from sortie.scheduler.lease_times import UNTAKEN_LIMIT, Ending
from sortie.store.leases import Fleet, LeaseStanding


class LeaseCounts:
    """What happened to the leases of one workflow since the process began."""

    def __init__(self) -> None:
        self.failed_renewals = 0
        self.refused_writes = 0

    def refuse(self) -> None:
        """Count a write that was refused, as another daemon leads."""
        self.refused_writes += 1


class Candidacy:
    """``daemon`` is the id of this process, and ``seconds`` is how long a lease lasts; ``lease`` is
    what was acquired at ``sent_at``, or renewed then. The events ``leading``, ``lost`` and
    ``withdrawn`` come in that order.

    ``lost_for`` says why the lease is lost, and ``is_withdrawn`` that nothing is done for the
    workflow any more. ``handing_over`` is why the workflow is to be handed to another daemon as
    soon as nothing runs, None where it is not; ``wish`` is set, and replaced, when that changes.
    ``is_fit``: runs on this machine can work; ``has_others``: another daemon would lead the
    workflow. ``error`` is why the server cannot be used now, and ``is_known`` whether it ever was.
    ``leader`` names the daemon that leads the workflow, and ``taken_from`` the one that led it
    until its lease was over. ``standing`` is how the lease of another daemon stood at ``seen_at``,
    and ``fleet`` what was last seen of all daemons, of which ``candidates`` could lead the
    workflow.
    """

    def __init__(self, workflow: str, seconds: float) -> None:
        self.workflow = workflow
        self.daemon = ""
        self.seconds = seconds
        self.lease: Lease | None = None
        self.sent_at = 0.0
        self.leader: str | None = None
        self.taken_from: str | None = None
        self.error: str | None = None
        self.is_known = self.is_withdrawn = self.has_others = False
        self.is_fit = True
        self.handing_over: Ending | None = None
        self.leading, self.lost, self.withdrawn = trio.Event(), trio.Event(), trio.Event()
        self.wish = trio.Event()
        self.lost_for, self._lost_by, self.lost_at = "", "expired", 0.0
        self.standing: LeaseStanding | None = None
        self.seen_at = 0.0
        self.fleet: Fleet | None = None
        self.candidates: int | None = None
        self.counts = LeaseCounts()
        self._seen: tuple[int, float] | None = None
        self._unchanged_since = 0.0
        self._preferred: str | None = None
        self._preferred_since = 0.0
        self._loop = trio.lowlevel.current_trio_token()

    @property
    def is_held(self) -> bool:
        """Whether this process leads the workflow."""
        return self.lease is not None and not self.is_lost and not self.is_withdrawn

    @property
    def may_renew(self) -> bool:
        """Whether the lease is to go on. One that is to be given up, such as that of a machine that
        has slept, is not renewed: its end is what others wait for."""
        return self.is_held and boot_time() < lease_times.cancel_at(self.sent_at, self.seconds)

    @property
    def is_lost(self) -> bool:
        """Whether the lease is over, or was given up."""
        return bool(self.lost_for)

    @property
    def is_overdue(self) -> bool:
        """Whether this process still works for the workflow though its watchdog is about to kill it
        for that: it was stopped, or the machine has slept."""
        if self.lease is None or self.is_withdrawn:
            return False
        return boot_time() >= lease_times.kill_at(self.sent_at, self.seconds)

    @property
    def ending(self) -> str:
        """Why the lease is given back."""
        return self._lost_by if self.is_lost else self.handing_over or "released"

    @property
    def is_given_back(self) -> bool:
        """Whether others may have the lease before its end, once its work has ended. One that was
        not renewed in time ends by itself, and so does one that is nearly over, or whose work has
        ended without the answer to a change: what was sent may arrive until then."""
        if self.lease is None or self.ending == "expired":
            return False
        if not self.is_lost:
            return self.settled_at <= boot_time()
        return self.settled_at < lease_times.kill_at(self.sent_at, self.seconds)

    @property
    def settled_at(self) -> float:
        """When what was sent to change something has arrived, or never will."""
        assert self.lease is not None
        unanswered = self.lease.unanswered_until
        return max(unanswered, self.lost_at + UNTAKEN_LIMIT) if self.is_lost else unanswered

    def tell(self, tell: Callable[[], object]) -> None:
        """Have something done in the loop soon; from any thread."""
        with suppress(trio.RunFinishedError):
            self._loop.run_sync_soon(tell)

    def see(self, standing: LeaseStanding) -> None:
        """Know how the lease stands that another daemon has, or that has been given back."""
        if self._seen != (standing.token, standing.expires):
            self._seen, self._unchanged_since = (standing.token, standing.expires), boot_time()
        self.leader, self.error, self.is_known = standing.name, None, True
        self.standing, self.seen_at = standing, boot_time()

    def fail(self, error: str) -> None:
        """Know why the server cannot be used now."""
        self.error = error
        if self.lease is not None and not self.is_lost:
            self.counts.failed_renewals += 1

    def steadily(self, preferred: str | None) -> str | None:
        """Return the preferred daemon once it has been the same for some seconds."""
        if self._preferred != preferred:
            self._preferred, self._preferred_since = preferred, boot_time()
        is_steady = boot_time() - self._preferred_since >= lease_times.STEADY
        return preferred if is_steady else None

    def acquire_in(self, standing: LeaseStanding, wait: float, daemon: str) -> float:
        """Return in how many seconds a daemon may ask for the lease, as it was seen until now,
        where others may have it for so many seconds."""
        return lease_times.acquire_in(
            left=standing.left,
            unchanged=boot_time() - self._unchanged_since,
            lease=self.seconds,
            is_led=standing.daemon not in (None, daemon),  # its own is only left to end
            wait=wait,
        )

    def acquired(self, lease: Lease, sent_at: float, former: LeaseStanding) -> None:
        """Lead the workflow from now on; it was asked for at ``sent_at``."""
        self.lease, self.sent_at, self.error = lease, sent_at, None
        self.leader, self.taken_from = lease.holder, former.name
        self.tell(self.leading.set)

    def renewed(self, sent_at: float) -> None:
        """Lead it for longer."""
        assert self.lease is not None
        self.sent_at, self.error = sent_at, None
        self.lease.valid_until = lease_times.kill_at(sent_at, self.seconds)

    def hand_over(self, ending: Ending | None) -> None:
        """Hand the workflow over once nothing runs, or go on with it."""
        if self.handing_over != ending:
            self.handing_over = ending
            self.tell(self._notify)

    def _notify(self) -> None:
        event, self.wish = self.wish, trio.Event()
        event.set()

    def lose(self, reason: str, ending: str = "expired") -> None:
        """Act for the workflow no more. ``reason`` is a sentence without a full stop."""
        if self.is_lost:
            return
        self._lost_by = ending
        self.lost_for, self.lost_at = reason, boot_time()
        if self.lease is not None:
            self.lease.valid_until = -1.0
        self.tell(self.lost.set)

    async def watch(self) -> None:
        """Lose the lease in time where it is not renewed; return once it is lost."""
        while not self.lost.is_set():
            left = lease_times.cancel_at(self.sent_at, self.seconds) - boot_time()
            if left <= 0:
                error = f": {self.error}" if self.error else ""
                self.lose(f"its lease could not be renewed in time{error}")
            with trio.move_on_after(max(min(left, 1.0), 0.0)):
                await self.lost.wait()
