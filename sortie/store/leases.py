"""The leases of workflows and the daemons that share them, as a server tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct

EndedBy = Literal["released", "moved", "drained", "unfit", "expired"]
"""Why a daemon leads a workflow no more: it ended, it handed the workflow over to the daemon that
should lead it, or because it is drained; runs on its machine could not work; or its lease ran
out."""


class LeaseStanding(Struct, frozen=True, kw_only=True):
    """How the lease of a workflow stands on the server.

    ``daemon`` and ``name`` are those of its holder, None without one; ``left`` are the seconds
    until it is over, at most 0 afterwards, and ``expires`` is that time, in Unix seconds of the
    server. ``candidates`` are the weights of living daemons that
    would lead the workflow, by their ids.
    """

    workflow: str
    token: int
    daemon: str | None
    name: str | None
    left: float
    expires: float = 0.0
    candidates: Mapping[str, float]


class Leadership(Struct, frozen=True, kw_only=True):
    """The time for which a daemon, called ``name``, led a workflow with one token; ``until`` and
    ``ended_by`` are None while it does. Times are the server's."""

    token: int
    workflow: str
    daemon: str
    name: str
    since: datetime
    until: datetime | None
    ended_by: EndedBy | None


class KnownDaemon(Struct, frozen=True, kw_only=True):
    """A daemon of the database, which was last heard of ``silent`` seconds ago; ``leads`` are the
    workflows whose leases it holds."""

    id: str
    name: str
    version: str
    weight: float
    draining: bool
    since: datetime
    silent: float
    is_alive: bool
    leads: tuple[str, ...]


class Fleet(Struct, frozen=True, kw_only=True):
    """The daemons of a database at the time ``seen_at`` of CLOCK_BOOTTIME.

    ``last`` are the newest leaderships of some workflows, the newest first, and ``endings`` how
    many leaderships of each ever ended, by the reason.
    """

    seen_at: float
    daemons: tuple[KnownDaemon, ...]
    last: Mapping[str, tuple[Leadership, ...]]
    endings: Mapping[str, Mapping[str, int]]
