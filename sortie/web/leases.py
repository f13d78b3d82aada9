"""The views of the lease of a workflow, and of the daemons that may lead it.

Seconds are as of the moment at which the view was made. They, and when a daemon was heard of, do
not count when two views are compared: followers of live events are not told that time passes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from sortie.model.times import rfc3339
from sortie.store.leases import EndedBy
from sortie.web.times import Time


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipView:
    """The time for which the daemon ``leader`` (``daemon`` is its id) led a workflow, which is
    named by its schema. ``until`` and ``ended_by`` are null while it does."""

    token: int
    workflow: str
    leader: str
    daemon: str
    since: Time
    until: Time | None
    ended_by: EndedBy | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipsView:
    """A page of leaderships, the newest first."""

    leaderships: tuple[LeadershipView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseView:
    """Which daemon leads the workflow; ``is_here``: the one that answers. ``workflow`` is the name
    of its schema.

    ``seconds_left`` is how long the lease lasts unless it is renewed, and
    ``seconds_since_renewal`` is known of a lease of the daemon that answers. ``handing_over`` says
    why another daemon is to lead the workflow once its runs have ended, and ``error`` why the
    leases cannot be read or renewed now. ``last`` are the newest leaderships.
    """

    workflow: str
    is_here: bool
    token: int | None
    leader: str | None
    since: Time | None
    seconds_left: float | None = field(default=None, compare=False)
    seconds_since_renewal: float | None = field(default=None, compare=False)
    handing_over: Literal["drained", "moved"] | None = None
    error: str | None = None
    last: tuple[LeadershipView, ...] = ()

    @property
    def sentence(self) -> str:
        """What it is, for people."""
        if self.leader is None:
            said = "no daemon leads the workflow"
        else:
            said = f"{self.leader}, token {self.token}"
            said += "" if self.since is None else f", since {rfc3339(self.since, 'seconds')}"
        if self.handing_over is not None:
            said += f"; to be handed over once its runs have ended, as it is {self.handing_over}"
        return said + (f"; {self.error}" if self.error else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDaemonView:
    """A daemon of the database, by its id; ``is_this`` is the one that answers. ``leads`` are
    schemas of workflows. One that was not heard of for 15 seconds is not ``alive``."""

    id: str
    name: str
    is_this: bool
    version: str
    weight: float
    draining: bool
    alive: bool
    since: Time
    heard_at: Time = field(compare=False)
    leads: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What it is, for people."""
        if not self.alive:
            return f"{self.name} was last heard of at {rfc3339(self.heard_at, 'seconds')}"
        leads = ", ".join(self.leads) or "nothing"
        drained = ", is drained" if self.draining else ""
        return f"{self.name} lives{drained}, leads {leads}, version {self.version}"


def forget_passing_time(state: dict[str, Any]) -> None:
    """Take out of a state, as programs get it, what changes as time passes."""
    lease = state.get("lease")
    if isinstance(lease, dict):
        lease.pop("seconds_left", None)
        lease.pop("seconds_since_renewal", None)
    for daemon in state.get("daemons", ()):
        daemon.pop("heard_at", None)
