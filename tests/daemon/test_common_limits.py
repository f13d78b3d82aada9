"""What workflows of two daemons share through a real server: slots, usage limits, and its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
import trio

from sortie.daemon.common_exchange import CommonExchange
from sortie.daemon.common_limits import CommonLimits
from sortie.facts import CommonSlotsKnown, CommonSlotsUnknown, Fact
from sortie.model import LOCAL, RunId
from sortie.orchestrator import Orchestrator
from sortie.resources.lease import Lease, boot_time
from sortie.scheduler import events as ev
from sortie.scheduler.grants import SlotGrant
from sortie.store.postgres_address import PostgresAddress, parse_address
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.postgres_leases import PostgresLeases
from sortie.store.postgres_shared import bring_up_to_date
from tests.orchestrator.world import World
from tests.store.postgres_server import PostgresServer, postgres_running

PATIENCE = 60.0
ALL = 4


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of this module."""
    with postgres_running() as running:
        yield running


@pytest.fixture
def address(server: PostgresServer) -> PostgresAddress:
    """A shared schema of its own."""
    return parse_address(server.url, "none", server.schema()).of_shared_schema()


def led(address: PostgresAddress, workflow: str, daemon: str) -> Lease:
    """Return the lease of a workflow, which a daemon takes over from whichever has it."""
    connection = PostgresConnection(address)
    bring_up_to_date(connection)
    leases = PostgresLeases(connection, daemon, f"{daemon}:1")
    leases.join("1", 1.0, [workflow])
    standing = leases.standings([workflow])[workflow]
    if standing.daemon is not None:
        leases.give_back(standing.token, "released")
        standing = leases.standings([workflow])[workflow]
    token = leases.acquire(standing, 600.0, 0.0)
    connection.drop()
    assert token is not None
    return Lease(workflow, token, daemon, boot_time() + 600.0)


class Daemon:
    """One daemon's part. ``stale_after`` seconds without news it starts nothing."""

    def __init__(self, address: PostgresAddress, name: str, stale_after: float = 600.0) -> None:
        self.facts: list[Fact] = []
        exchange = CommonExchange(address, name, f"{name}:1", 5.0)
        self.common = CommonLimits(exchange, stale_after, ALL, self.facts.append)

    @asynccontextmanager
    async def leads(self, lease: Lease) -> AsyncIterator[Orchestrator]:
        """Lead a workflow for a block, which has nothing to do."""
        async with World().life() as one, trio.open_nursery() as nursery:
            one.tell(ev.SlotsGranted(SlotGrant(common=True)))
            nursery.start_soon(self.common.run)
            self.common.join(one, lease)
            yield one
            self.common.leave(lease.workflow, ended=True)
            nursery.cancel_scope.cancel()


async def until(condition: Callable[[], object]) -> None:
    """Wait until something holds."""
    with trio.fail_after(PATIENCE):
        while not condition():
            await trio.sleep(0.05)


def granted(one: Orchestrator) -> SlotGrant:
    """Return the grant that a scheduler obeys."""
    return one.snapshot().grant or SlotGrant()


async def test_slots_go_to_who_is_there(address: PostgresAddress) -> None:
    """A workflow that is alone has all; another that joins takes none of them for certain before
    they are given up, and what one leaves is the other's."""
    first, second = Daemon(address, "one"), Daemon(address, "two")
    async with first.leads(led(address, "w", "one")) as alone:
        await until(lambda: granted(alone).total == ALL)
        most = alone.settings.agent.max_concurrent_agents
        assert granted(alone).slots == min(most, ALL)
        assert granted(alone).hosts == {LOCAL: ALL}
        async with second.leads(led(address, "x", "two")) as other:
            await until(lambda: granted(alone).slots == 0)  # as it wants none
            await until(lambda: granted(other).total == ALL)
        await until(lambda: granted(alone).slots == min(most, ALL))
    assert (first.facts, second.facts) == ([], [])


async def test_a_usage_limit_holds_workflows_of_other_daemons(address: PostgresAddress) -> None:
    """Those that run, and those that are led later by another daemon; when it is over for one,
    the others may try it."""
    first, second, third = (Daemon(address, name) for name in ("one", "two", "three"))
    async with first.leads(led(address, "w", "one")) as one:
        async with second.leads(led(address, "x", "two")) as two:
            await until(lambda: granted(two).total)
            (account,) = one.account_limits()
            one.tell(ev.UsageLimitMet(RunId("r"), account, "no more for now", seconds=600.0))
            await until(lambda: two.usage_limit is not None)
            assert account in granted(two).kept_accounts
        async with third.leads(led(address, "x", "three")) as later:
            await until(lambda: later.usage_limit is not None)

            one.tell(ev.PauseAsked(False))
            await until(lambda: later.usage_limit and not later.usage_limit.backing_off)
            await until(lambda: not granted(later).kept_accounts)


async def test_nothing_is_started_while_nothing_is_heard() -> None:
    """The server goes away: that is told, the grant becomes stale, and is fresh again later."""
    with postgres_running() as own:
        address = parse_address(own.url, "none", "shared").of_shared_schema()
        daemon = Daemon(address, "one", stale_after=2.0)
        async with daemon.leads(led(address, "w", "one")) as one:
            await until(lambda: granted(one).usable)
            own.stop()
            await until(lambda: granted(one).stale)
            assert granted(one).usable == 0
            own.start()
            await until(lambda: granted(one).usable)

    assert [type(fact) for fact in daemon.facts] == [CommonSlotsUnknown, CommonSlotsKnown]
