"""Views of the lease of a workflow and of the daemons of its database, of what was last seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from msgspec import Struct

from sortie.config.store import StoreSettings
from sortie.daemon.candidacy import Candidacy
from sortie.daemon.wall_time import utc_now
from sortie.resources import run_in_thread
from sortie.resources.lease import boot_time
from sortie.store.leases import Fleet, KnownDaemon, Leadership
from sortie.store.opening import postgres_module
from sortie.web.leases import KnownDaemonView, LeadershipView, LeaseView


def lease_view(candidacy: Candidacy) -> LeaseView:
    """Return how the lease of a workflow stands."""
    fleet, lease, now = candidacy.fleet, candidacy.lease, boot_time()
    last = () if fleet is None else fleet.last.get(candidacy.workflow, ())
    token: int | None
    leader: str | None
    age: float | None
    if lease is not None and candidacy.is_held:
        token, leader = lease.token, lease.holder
        left, age = lease.valid_until - now, now - candidacy.sent_at
    else:
        standing = candidacy.standing
        token = None if standing is None or standing.daemon is None else standing.token
        leader = candidacy.leader if token is not None else None
        left = 0.0 if standing is None else standing.left - (now - candidacy.seen_at)
        age = None
    return LeaseView(
        workflow=candidacy.workflow,
        is_here=age is not None,
        token=token,
        leader=leader,
        since=next((one.since for one in last if one.token == token), None),
        seconds_left=None if token is None else round(max(left, 0.0), 1),
        seconds_since_renewal=None if age is None else round(age, 1),
        handing_over=candidacy.handing_over,
        error=candidacy.error,
        last=tuple(map(leadership_view, last)),
    )


def leadership_view(leadership: Leadership) -> LeadershipView:
    """Return a leadership as programs get it."""
    return LeadershipView(
        token=leadership.token,
        workflow=leadership.workflow,
        leader=leadership.name,
        daemon=leadership.daemon,
        since=leadership.since,
        until=leadership.until,
        ended_by=leadership.ended_by,
    )


def daemon_views(candidacies: Iterable[Candidacy]) -> tuple[KnownDaemonView, ...]:
    """Return the daemons of the databases of some workflows: the living first, each by name."""
    seen = [(fleet, one.daemon) for one in candidacies if (fleet := one.fleet) is not None]
    found = {
        daemon.id: _daemon_view(daemon, fleet, this)
        for fleet, this in sorted(seen, key=lambda each: each[0].seen_at)
        for daemon in fleet.daemons
    }
    return tuple(sorted(found.values(), key=lambda one: (not one.alive, one.name, one.id)))


def _daemon_view(daemon: KnownDaemon, fleet: Fleet, this: str) -> KnownDaemonView:
    silent = daemon.silent + boot_time() - fleet.seen_at
    return KnownDaemonView(
        id=daemon.id,
        name=daemon.name,
        is_this=daemon.id == this,
        version=daemon.version,
        weight=daemon.weight,
        draining=daemon.draining,
        alive=daemon.is_alive,
        since=daemon.since,
        heard_at=(utc_now() - timedelta(seconds=silent)).replace(microsecond=0),
        leads=daemon.leads,
    )


class WorkflowLease(Struct, frozen=True):
    """The lease of a workflow, as HTTP asks for it."""

    candidacy: Candidacy
    store: StoreSettings

    def view(self) -> LeaseView:
        """Return how it stands."""
        return lease_view(self.candidacy)

    def daemons(self) -> tuple[KnownDaemonView, ...]:
        """Return the daemons of the database."""
        return daemon_views((self.candidacy,))

    async def history(self, limit: int, before: int | None) -> tuple[LeadershipView, ...]:
        """Return leaderships, the newest first, with tokens below ``before``. Raises StoreError."""
        found = await run_in_thread(past_leaderships, self.store, limit, before)
        return tuple(map(leadership_view, found))


def past_leaderships(
    store: StoreSettings, limit: int, before: int | None = None
) -> Sequence[Leadership]:
    """Return who led a workflow, the newest first, as its server has it. Raises StoreError."""
    address = postgres_module().address_of(store)
    from sortie.store.postgres_fleet import read_leaderships

    return read_leaderships(address, limit, before)
