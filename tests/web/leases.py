"""A lease that another daemon holds, and the daemons of its database, as tests show them."""

from __future__ import annotations

from datetime import UTC, datetime

from sortie.web.leases import KnownDaemonView, LeadershipView, LeaseView

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LEADS = LeadershipView(
    token=7,
    workflow="team",
    leader="east:71",
    daemon="aa",
    since=NOON,
    until=None,
    ended_by=None,
)
LED = LeadershipView(
    token=5,
    workflow="team",
    leader="west:9",
    daemon="bb",
    since=NOON,
    until=NOON,
    ended_by="expired",
)
LEASE = LeaseView(
    workflow="team",
    is_here=True,
    token=7,
    leader="east:71",
    since=NOON,
    seconds_left=12.0,
    seconds_since_renewal=3.0,
    handing_over="drained",
    last=(LEADS, LED),
)
HERE = KnownDaemonView(
    id="aa",
    name="east:71",
    is_this=True,
    version="1.2",
    weight=2.0,
    draining=True,
    alive=True,
    since=NOON,
    heard_at=NOON,
    leads=("team",),
)
GONE = KnownDaemonView(
    id="bb",
    name="west:<9>",
    is_this=False,
    version="1.1",
    weight=1.0,
    draining=False,
    alive=False,
    since=NOON,
    heard_at=NOON,
    leads=(),
)
