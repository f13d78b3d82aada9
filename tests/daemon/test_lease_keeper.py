"""What keeps leases on a real server, where a leader has given its lease up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import trio

from sortie.daemon.candidacy import Candidacy
from sortie.daemon.lease_keeper import LeaseKeeper
from sortie.daemon.watchdog_client import LeaseWatchdog
from sortie.resources import run_in_thread
from sortie.resources.lease import Lease, boot_time
from sortie.store.leases import LeaseStanding
from sortie.store.postgres_address import PostgresAddress, parse_address
from tests.store.postgres_server import PostgresServer, postgres_running

SECONDS = 6.0
"""How long a lease lasts here."""


class _Unwatched(LeaseWatchdog):
    """Kills nothing: the process is that of the tests."""

    def _start(self) -> None:
        pass

    def _tell(self, line: str) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server for the tests of this module."""
    with postgres_running() as running:
        yield running


@pytest.fixture
async def keepers(server: PostgresServer) -> AsyncIterator[tuple[LeaseKeeper, LeaseKeeper]]:
    """Those of two daemons."""
    address = parse_address(server.url, server.schema(), server.schema()).of_shared_schema()
    both = _keeper(address, "one"), _keeper(address, "two")
    yield both
    for each in both:
        await run_in_thread(each.close)


def _keeper(address: PostgresAddress, name: str) -> LeaseKeeper:
    keeper = LeaseKeeper(address, name, f"{name}:1", "1", 1.0, _Unwatched())
    keeper.start()
    return keeper


async def test_a_lease_that_was_given_up_is_renewed_no_more(
    keepers: tuple[LeaseKeeper, LeaseKeeper],
) -> None:
    """Its leader may be hung while it ends its work: the others wait for one lease, not for it."""
    leader, standby = Candidacy("w", SECONDS), Candidacy("w", SECONDS)
    with trio.fail_after(60):
        keepers[0].stand(leader)
        await leader.leading.wait()
        keepers[1].stand(standby)
        first = leader.sent_at
        while standby.leader is None or leader.sent_at == first:
            await trio.sleep(0.05)

        leader.lose("its lease could not be renewed in time")
        await standby.leading.wait()

    assert leader.lease is not None
    assert standby.lease is not None
    assert standby.lease.token > leader.lease.token


async def test_a_daemon_that_the_server_has_forgotten_joins_again(
    server: PostgresServer, keepers: tuple[LeaseKeeper, LeaseKeeper]
) -> None:
    """As after a day without a word from a machine that slept, where its session has outlived
    that: it would be no standby for any workflow, and nothing would tell."""
    leader, standby = Candidacy("w", SECONDS), Candidacy("w", SECONDS)
    with trio.fail_after(60):
        keepers[0].stand(leader)
        await leader.leading.wait()
        keepers[1].stand(standby)
        while leader.candidates != 2:
            await trio.sleep(0.05)
        schema = keepers[0].address.schema
        server.ask(f"DELETE FROM \"{schema}\".daemons WHERE id = 'two'")
        while leader.candidates != 1:
            await trio.sleep(0.05)
        while leader.candidates != 2:
            await trio.sleep(0.05)


async def test_a_lease_is_left_to_its_end_while_a_change_may_arrive() -> None:
    """One whose leader ends in good order is given back at once, but for a change that was cut."""
    candidacy, now = Candidacy("w", 15.0), boot_time()
    lease = Lease("w", 1, "one:1", now + 15.0)
    former = LeaseStanding(
        workflow="w", token=0, daemon=None, name=None, left=0.0, candidates={"one": 1.0}
    )
    candidacy.acquired(lease, now, former)

    answered = candidacy.is_given_back
    lease.leave_unanswered(600.0)
    cut = candidacy.is_given_back
    lease.unanswered_until = boot_time()
    arrived = candidacy.is_given_back

    assert (answered, cut, arrived) == (True, False, True)


async def test_a_lease_whose_time_to_give_up_has_come_is_renewed_no_more() -> None:
    """As where a machine wakes: to renew it would only have the others wait for longer."""
    candidacy, now = Candidacy("w", 15.0), boot_time()
    lease = Lease("w", 1, "one:1", now + 15.0)
    former = LeaseStanding(
        workflow="w", token=0, daemon=None, name=None, left=0.0, candidates={"one": 1.0}
    )
    candidacy.acquired(lease, now, former)

    renewable = candidacy.may_renew
    candidacy.renewed(now - 10.0)

    assert (renewable, candidacy.may_renew) == (True, False)


async def test_a_leader_that_wakes_too_late_changes_nothing(
    server: PostgresServer,
) -> None:
    """Its watchdog is about to kill it; until then it is no candidate once more, and gives nothing
    back."""
    schema = server.schema()
    address = parse_address(server.url, schema, schema).of_shared_schema()
    keeper, leader = _keeper(address, "one"), Candidacy("w", SECONDS)

    def seen() -> object:
        return [
            server.ask(f'SELECT * FROM "{schema}".{table} ORDER BY 1, 2')
            for table in ("daemons", "candidates", "leases", "leaderships")
        ]

    with trio.fail_after(60):
        keeper.stand(leader)
        await leader.leading.wait()
        leader.sent_at -= 3600.0  # as after an hour in which this process was stopped
        while keeper.error is None:
            await trio.sleep(0.05)
        before = seen()
        keeper.join_again()
        leader.lose("its lease could not be renewed in time")
        keeper.withdraw(leader)
        await run_in_thread(keeper.close)

    assert seen() == before
    assert keeper.is_overdue
    assert "w" in keeper._watchdog._deadlines
