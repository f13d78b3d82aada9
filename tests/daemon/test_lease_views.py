"""What is shown of a lease: by its holder, by a standby, and once it is lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from sortie.daemon.candidacy import Candidacy
from sortie.daemon.lease_metrics import lease_gauges
from sortie.daemon.lease_views import daemon_views, lease_view
from sortie.resources.lease import Lease, boot_time
from sortie.store.leases import Fleet, KnownDaemon, Leadership, LeaseStanding
from sortie.telemetry.metrics.leases import LeaseGauges

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LEADS = Leadership(
    token=7, workflow="team", daemon="aa", name="east:71", since=NOON, until=None, ended_by=None
)


def fleet(seen_at: float) -> Fleet:
    """Return a daemon that lives, and the leadership of it."""
    living = KnownDaemon(
        id="aa",
        name="east:71",
        version="1",
        weight=1.0,
        draining=False,
        since=NOON,
        silent=2.0,
        is_alive=True,
        leads=("team",),
    )
    return Fleet(
        seen_at=seen_at,
        daemons=(living,),
        last={"team": (LEADS,)},
        endings={"team": {"expired": 3}},
    )


def standing(left: float, name: str | None = "east:71") -> LeaseStanding:
    return LeaseStanding(
        workflow="team",
        token=7,
        daemon=name and "aa",
        name=name,
        left=left,
        candidates={"aa": 1.0, "bb": 1.0},
    )


async def test_a_standby_tells_who_leads() -> None:
    """And for how long, as of when it looked; without a leader there is no token."""
    candidacy = Candidacy("team", 15.0)
    unknown = lease_view(candidacy)
    candidacy.fleet = fleet(boot_time())
    candidacy.see(standing(9.0))
    led = lease_view(candidacy)
    candidacy.see(standing(-3.0, None))
    free = lease_view(candidacy)

    assert (unknown.leader, unknown.token, unknown.last) == (None, None, ())
    assert (led.is_here, led.leader, led.token, led.since) == (False, "east:71", 7, NOON)
    assert led.seconds_left is not None
    assert 0 < led.seconds_left <= 9.0
    assert led.seconds_since_renewal is None
    assert replace(free, last=()) == replace(unknown, last=())


async def test_a_leader_tells_how_old_its_renewal_is() -> None:
    """Until the lease is lost: then nothing is held."""
    candidacy = Candidacy("team", 15.0)
    candidacy.daemon, now = "aa", boot_time()
    candidacy.fleet = fleet(now)
    candidacy.acquired(Lease("team", 7, "east:71", now + 15.0), now, standing(-1.0, None))
    candidacy.fail("the server is away")
    held, gauges = lease_view(candidacy), lease_gauges(candidacy)
    candidacy.lose("it was not renewed")
    lost, after = lease_view(candidacy), lease_gauges(candidacy)

    assert (held.is_here, held.leader, held.token, held.since) == (True, "east:71", 7, NOON)
    assert held.error == "the server is away"
    assert held.seconds_since_renewal is not None
    assert (gauges.held, gauges.failed_renewals, gauges.takeovers) == (True, 1, {"expired": 3})
    assert (lost.is_here, lost.token) == (False, None)
    assert (after.held, after.renewal_age) == (False, None)


async def test_the_daemons_of_a_database_are_told_once() -> None:
    """However many workflows they are seen by; the one that answers is marked."""
    one, two = Candidacy("team", 15.0), Candidacy("docs", 15.0)
    for candidacy in (one, two):
        candidacy.daemon, candidacy.fleet = "aa", fleet(boot_time())

    (seen,) = daemon_views([one, two, Candidacy("new", 15.0)])

    assert (seen.name, seen.is_this, seen.alive, seen.leads) == ("east:71", True, True, ("team",))


def test_what_the_server_has_not_told_is_no_number() -> None:
    """A count that begins with 0 and becomes the true one would look like many takeovers."""
    assert LeaseGauges().takeovers is None
    assert LeaseGauges().candidates is None
