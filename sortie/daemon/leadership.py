"""Leads a workflow for the length of a block, once its lease is acquired.

Rule 1: a workflow whose database is a file is led by the daemon that has the file's lock.
Rule 2: a lease that is lost cancels the block. It is given back only when the block has ended, and
with it all that it had started.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from sortie import __version__
from sortie.config.settings import Settings
from sortie.daemon.fitness import watch_fitness
from sortie.daemon.watchdog_client import LeaseWatchdog
from sortie.model import StoreError
from sortie.resources import run_in_thread
from sortie.resources.lease import LEASE, LeaseLost, boot_time
from sortie.store.opening import postgres_module
from sortie.telemetry import Publish, facts

if TYPE_CHECKING:
    from sortie.daemon.candidacy import Candidacy
    from sortie.daemon.lease_keeper import LeaseKeeper
    from sortie.daemon.relay import Relay
    from sortie.store.postgres_address import PostgresAddress

_GIVE_BACK = 3.0  # seconds in which the server is told that the lease is free
_LOOK = 0.5  # seconds
_UNLED = 3.0  # seconds: a free lease that this process may have is acquired before


class Leaderships:
    """The leases of this process. ``daemon`` is its id among the daemons of a database."""

    def __init__(self, daemon: str | None = None) -> None:
        self.daemon = daemon or secrets.token_hex(8)
        self.has_begun_anew = daemon is not None
        self.watchdog = LeaseWatchdog()
        self._keepers: dict[tuple[str, str], LeaseKeeper] = {}
        self._relays: dict[tuple[str, str], Relay] = {}

    @property
    def keepers(self) -> Collection[LeaseKeeper]:
        """What keeps the leases, one for each database."""
        return self._keepers.values()

    @property
    def is_overdue(self) -> bool:
        """Whether this process has to end, as a lease of it was over before it gave it up."""
        return any(keeper.is_overdue for keeper in self.keepers)

    def keeper_of(self, settings: Settings) -> LeaseKeeper:
        """Return what keeps the leases of the database that the settings name; it works already."""
        address, key = _database_of(settings)
        if key not in self._keepers:
            from sortie.daemon.lease_keeper import LeaseKeeper

            self._keepers[key] = keeper = LeaseKeeper(
                address,
                self.daemon,
                f"{os.uname().nodename}:{os.getpid()}",
                __version__,
                settings.store.weight,
                self.watchdog,
            )
            keeper.start()
        return self._keepers[key]

    def relay_of(self, settings: Settings) -> Relay:
        """Return what brings requests to the leaders of workflows on the database that the settings
        name; it works already."""
        address, key = _database_of(settings)
        if key not in self._relays:
            from sortie.daemon.relay import Relay

            self._relays[key] = relay = Relay(address, self.daemon)
            relay.start()
        return self._relays[key]

    async def aclose(self, *, coming_back: bool = False) -> None:
        """Leave the other daemons, unless this process begins anew, and end the watchdog."""
        for relay in self._relays.values():
            await run_in_thread(relay.close)
        for keeper in self._keepers.values():
            keeper.is_coming_back = coming_back
            await run_in_thread(keeper.close)
        await run_in_thread(self.watchdog.close)


@asynccontextmanager
async def candidate(
    settings: Settings, leaderships: Leaderships
) -> AsyncIterator[Candidacy | None]:
    """Stand for leading the workflow until the block ends; None where its database is a file."""
    if settings.store.url is None:
        yield None
        return
    from sortie.daemon.candidacy import Candidacy

    keeper = leaderships.keeper_of(settings)
    candidacy = Candidacy(settings.store.schema_name, settings.store.lease)
    candidacy.is_known = leaderships.has_begun_anew
    keeper.stand(candidacy)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch_server, keeper, leaderships.relay_of(settings))
            nursery.start_soon(watch_fitness, candidacy, keeper, settings)
            yield candidacy
            nursery.cancel_scope.cancel()
    finally:
        if candidacy.is_lost and candidacy.is_given_back:
            with trio.CancelScope(shield=True):
                await trio.sleep(max(candidacy.settled_at - boot_time(), 0.0))
        keeper.withdraw(candidacy)
        with trio.CancelScope(deadline=trio.current_time() + _GIVE_BACK, shield=True):
            await candidacy.withdrawn.wait()


async def stand_by(candidacy: Candidacy, publish: Publish) -> None:
    """Wait until this process leads the workflow.

    Raises StoreError where the server could not be used from the first.
    """
    told: tuple[str | None, str | None] = (None, None)
    while not candidacy.leading.is_set():
        if candidacy.error is not None and not candidacy.is_known:
            raise StoreError(candidacy.error)
        if told != (candidacy.leader, candidacy.error):
            told = (candidacy.leader, candidacy.error)
            publish(facts.LeaseAwaited(leader=candidacy.leader, error=candidacy.error))
        with trio.move_on_after(_LOOK):
            await candidacy.leading.wait()
    assert candidacy.lease is not None
    former = candidacy.taken_from
    publish(facts.LeaseAcquired(token=candidacy.lease.token, former=former))


async def known_to_stand_by(candidacy: Candidacy) -> None:
    """Return once another daemon is known to lead the workflow, or none while this one may not."""
    began = trio.current_time()
    while candidacy.leader is None:
        if candidacy.is_known and trio.current_time() - began > _UNLED:
            return
        await trio.sleep(0.2)


@asynccontextmanager
async def leading(
    candidacy: Candidacy | None, publish: Publish, ending: Callable[[], object]
) -> AsyncIterator[None]:
    """Lead the workflow within the block, whose lease is acquired; None: without a lease.

    ``ending`` is called when the lease is lost: what the block has started gets no more grace.
    Raises LeaseLost when the block has ended for that.
    """
    if candidacy is None:
        yield
        return
    assert candidacy.lease is not None
    LEASE.set(candidacy.lease)
    token = candidacy.lease.token

    async def end_when_lost() -> None:
        await candidacy.watch()
        publish(facts.LeaseEnded(token=token, reason=candidacy.lost_for))
        ending()
        nursery.cancel_scope.cancel()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(end_when_lost)
            yield
            nursery.cancel_scope.cancel()
    finally:
        LEASE.set(None)
    if candidacy.is_lost:
        raise LeaseLost(f"this daemon leads the workflow no more: {candidacy.lost_for}")


def _database_of(settings: Settings) -> tuple[PostgresAddress, tuple[str, str]]:
    """Return the address of the shared schema, and what stands for it among databases."""
    address = postgres_module().address_of(settings.store).of_shared_schema()
    assert settings.store.url is not None
    return address, (settings.store.url.get_secret_value(), address.schema)


async def _watch_server(keeper: LeaseKeeper, relay: Relay) -> None:
    while True:
        await trio.sleep(1.0)
        keeper.give_up_silent_server()
        relay.give_up_silent_server()
