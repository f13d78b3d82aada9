"""Leases on a real server: who may acquire one, and what is refused for an older token."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from functools import partial

import psycopg
import pytest

from sortie.resources.lease import Lease, LeaseLost, boot_time
from sortie.store.postgres import open_postgres
from sortie.store.postgres_address import PostgresAddress, parse_address
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.postgres_database import PostgresDatabase
from sortie.store.postgres_leases import PostgresLeases
from sortie.store.postgres_shared import bring_up_to_date
from tests.store.postgres_server import PostgresServer, postgres_running

LONG, OVER = 600.0, 0.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server for the tests of this module."""
    with postgres_running() as running:
        yield running


@pytest.fixture
def address(server: PostgresServer) -> PostgresAddress:
    """A schema of a workflow, and one that daemons share, both new."""
    return parse_address(server.url, server.schema(), server.schema())


class Member:
    """A daemon's view of the leases."""

    def __init__(self, address: PostgresAddress, name: str, weight: float = 1.0) -> None:
        self.workflow = address.schema
        self.connection = PostgresConnection(address.of_shared_schema())
        bring_up_to_date(self.connection)
        self.leases = PostgresLeases(self.connection, name, f"{name}:1")
        self.leases.join("1", weight, [self.workflow])

    def acquire(self, seconds: float = LONG) -> int | None:
        """Take the lease where it is free; return its token."""
        standing = self.leases.standings([self.workflow])[self.workflow]
        return self.leases.acquire(standing, seconds, 0.0)


@pytest.fixture
def members(address: PostgresAddress) -> Iterator[tuple[Member, Member]]:
    """Two daemons."""
    both = Member(address, "one"), Member(address, "two", 3.0)
    yield both
    for each in both:
        each.connection.drop()


def opened(address: PostgresAddress, token: int) -> PostgresDatabase:
    """Open the workflow's tables for a lease."""
    lease = Lease(address.schema, token, "one:1", boot_time() + LONG)
    return open_postgres(address, lease)


def prove_writable(
    database: PostgresDatabase,
    kind: Callable[[PostgresDatabase], AbstractContextManager[None]] = PostgresDatabase.transaction,
) -> None:
    """Write a row in a transaction."""
    with kind(database):
        database.change("prove_writable")


def test_a_lease_is_acquired_once_until_it_is_over(members: tuple[Member, Member]) -> None:
    """Each acquisition has a greater token, and the history tells how the one before ended."""
    one, two = members

    first = one.acquire(OVER)
    second = two.acquire()
    refused = one.acquire()
    assert first is not None
    assert second is not None
    two.leases.give_back(second, "moved")
    third = one.acquire()
    history = one.connection.execute("SELECT * FROM leaderships ORDER BY token")

    assert refused is None
    assert third is not None
    assert first < second < third
    assert [row["ended_by"] for row in history] == ["expired", "moved", None]
    assert [row["name"] for row in history] == ["one:1", "two:1", "one:1"]


def test_only_the_newest_token_is_renewed(members: tuple[Member, Member]) -> None:
    """A renewal that comes too late renews nothing."""
    one, two = members
    first = one.acquire(OVER)
    assert first is not None

    kept = one.leases.renew({first: OVER})
    second = two.acquire()
    late = one.leases.renew({first: LONG})
    assert second is not None

    assert kept == {first}
    assert late == frozenset()
    assert two.leases.renew({second: LONG}) == {second}


def test_many_that_ask_at_once_get_one_lease(address: PostgresAddress) -> None:
    """Whatever they saw before, the server gives it to one of them."""
    members = [Member(address, f"m{number}") for number in range(8)]
    seen = [each.leases.standings([each.workflow])[each.workflow] for each in members]
    got: list[int] = []
    begin = threading.Barrier(len(members))

    def ask(number: int) -> None:
        begin.wait()
        token = members[number].leases.acquire(seen[number], LONG, 0.0)
        if token is not None:
            got.append(token)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(members))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in members:
        each.connection.drop()

    assert len(got) == 1


def test_a_write_for_an_older_token_is_refused(
    address: PostgresAddress, members: tuple[Member, Member]
) -> None:
    """Durable or not, it leaves nothing, and says which token is too old."""
    one, two = members
    first = one.acquire(OVER)
    assert first is not None
    with closing(opened(address, first)) as database:
        with database.transaction():
            database.change("prove_writable")
        two.acquire()
        for kind in (PostgresDatabase.transaction, PostgresDatabase.forgettable_transaction):
            with pytest.raises(LeaseLost, match=f"token {first} of one:1"):
                database.perform(partial(prove_writable, kind=kind))


def test_an_acquisition_waits_for_no_transaction_of_the_former_leader(
    address: PostgresAddress, members: tuple[Member, Member]
) -> None:
    """A leader that stands still within one is ended, with what it had not committed."""
    one, two = members
    first = one.acquire(OVER)
    assert first is not None
    with closing(opened(address, first)) as database:
        tokens = []
        with pytest.raises(psycopg.Error), database.transaction():
            tokens.append(two.acquire())
            database.change("prove_writable")
        (second,) = tokens
        assert second is not None
        with closing(opened(address, second)) as new:
            prove_writable(new)


def test_a_transaction_under_way_keeps_its_lease(
    address: PostgresAddress, members: tuple[Member, Member]
) -> None:
    """What holds no lock of the schema is waited for, so that no write crosses an acquisition."""
    one, two = members
    first = one.acquire(OVER)
    assert first is not None
    with PostgresConnection(address.of_shared_schema()).live() as stranger:
        stranger.autocommit = False
        stranger.execute("SELECT 1 FROM leases FOR KEY SHARE")
        two.connection.execute("SET lock_timeout = '200ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            two.acquire()
        assert one.leases.renew({first: OVER}) == {first}
    assert two.acquire() is not None


def test_the_new_leader_ends_the_session_of_the_former_one(
    address: PostgresAddress, members: tuple[Member, Member]
) -> None:
    """It has the lock of the schema at once, although the former one has never noticed."""
    one, two = members
    first = one.acquire(OVER)
    assert first is not None
    with closing(opened(address, first)) as former:
        second = two.acquire()
        assert second is not None
        with closing(opened(address, second)) as following, following.transaction():
            following.change("prove_writable")
        with pytest.raises(LeaseLost):
            former.perform(prove_writable)


def test_candidates_are_the_living_that_do_not_drain(members: tuple[Member, Member]) -> None:
    """A daemon that leaves, or is drained, is preferred by none."""
    one, two = members
    workflow = one.workflow

    def candidates() -> dict[str, float]:
        return dict(one.leases.standings([workflow])[workflow].candidates)

    both = candidates()
    one.leases.drain(draining=True)
    drained = candidates()
    one.leases.drain(draining=False)
    two.leases.leave()

    assert both == {"one": 1.0, "two": 3.0}
    assert drained == {"two": 3.0}
    assert candidates() == {"one": 1.0}


def test_daemons_that_come_at_once_make_one_schema(address: PostgresAddress) -> None:
    """None of them fails because another one has made it first."""
    failures: list[Exception] = []
    begin = threading.Barrier(6)

    def come(number: int) -> None:
        begin.wait()
        try:
            Member(address, f"m{number}").connection.drop()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=come, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
