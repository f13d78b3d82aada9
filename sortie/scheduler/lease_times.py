"""When a lease is renewed, given up and taken over; pure.

A lease is held by a daemon, and its end is kept by the database. All times here are seconds of one
clock each: those of a holder are of its CLOCK_BOOTTIME, and no time of another machine is compared
with them. ``lease`` is the length of a lease in seconds.

Rule 1: a holder counts from the moment before it sent the renewal, never from the answer. The
server counted later, so the lease ends for the holder before it ends for the server.
Rule 2: each step comes before the next one: renewal, end of the workflow's life, end of the
process, end of the lease.
"""

from __future__ import annotations

from typing import Literal

KILL_MARGIN = 2.0
"""Seconds before the end of a lease at which its holder is killed; less for a short lease."""

UNTAKEN_LIMIT = 5.0
"""Seconds after which a request that the other side has not taken is given up, with its
connection."""

AHEAD = UNTAKEN_LIMIT - KILL_MARGIN
"""Seconds for which a lease has to be valid still when a change is sent: so what is sent has
arrived, or never will, before another daemon can acquire the lease."""

LINK_UNTAKEN_LIMIT = 10.0
"""The same as ``UNTAKEN_LIMIT`` for a link to a host or a pod, which carries a run: a network that
is away for less costs neither the lease nor the run. What is left is forgotten with the process."""

PREFERENCE = 1.0
"""Seconds for which a lease that became free is left to the preferred candidate."""

STEADY = 10.0
"""Seconds for which another daemon has to be preferred before a leader hands over to it: one that
fails as often as it starts gets nothing."""

LOOK = 1.0
"""Seconds between two looks of a standby at the leases, at most."""

_SOONEST_LOOK = 0.01
"""Seconds: sooner no standby looks again, however exactly it knows when a lease is over."""

Ending = Literal["drained", "moved"]
"""Why a leader that could go on hands its workflow over."""


def renew_at(sent_at: float, lease: float) -> float:
    """Return when the renewal after that of ``sent_at`` is due."""
    return sent_at + lease / 3


def cancel_at(sent_at: float, lease: float) -> float:
    """Return when the workflow's life is cancelled, unless a later renewal succeeds before."""
    return sent_at + lease * 2 / 3


def kill_at(sent_at: float, lease: float) -> float:
    """Return until when the holder may act, and when the watchdog kills its process, unless a later
    renewal succeeds before."""
    return sent_at + lease - min(KILL_MARGIN, lease / 6)


def preference(daemon: str, preferred: str | None) -> float:
    """Return for how many seconds a daemon leaves a free lease to another one."""
    return 0.0 if preferred in (None, daemon) else PREFERENCE


def acquire_in(*, left: float, unchanged: float, lease: float, is_led: bool, wait: float) -> float:
    """Return in how many seconds a daemon may ask for a lease, at most 0 where it may now.

    ``left`` are the seconds until it is over by the server's clock, and ``wait`` is for how long
    it is left to others then. That clock may jump, so where the lease was not given back
    (``is_led``) it also has to have stood ``unchanged``, by the clock of the daemon that looks,
    for the length of a lease.
    """
    return max(left + wait, lease - unchanged if is_led else 0.0)


def pause_of_standby(acquire_in: float) -> float:
    """Return in how many seconds a standby looks again that may acquire a lease in so many."""
    return min(LOOK, max(acquire_in, _SOONEST_LOOK))


def must_hand_over(daemon: str, preferred: str | None, *, draining: bool) -> Ending | None:
    """Return why a leader starts no further run and hands its workflow over, None where it leads
    on. ``preferred`` is None where no daemon could take the workflow over.

    The lease is released only once no run of the workflow is under way.
    """
    if draining:
        return "drained"
    return None if preferred in (None, daemon) else "moved"
