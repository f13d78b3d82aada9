"""What is seen of daemons and leases on a server: by other daemons, commands and the doctor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from pydantic import SecretStr

from sortie.config.store import StoreSettings
from sortie.daemon.doctor.store import leases_result
from sortie.model.checks import CheckResult
from sortie.resources.lease import Lease, LeaseLost, boot_time
from sortie.store.postgres import open_postgres, open_postgres_store
from sortie.store.postgres_address import PostgresAddress, parse_address
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.postgres_fleet import FleetWatch, read_leaderships
from sortie.store.postgres_leases import PostgresLeases
from sortie.store.postgres_shared import bring_up_to_date
from tests.store.postgres_server import PASSWORD, PostgresServer, postgres_running
from tests.worker.rig import settings_of

Join = Callable[[str], PostgresLeases]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server for the tests of this module."""
    with postgres_running() as running:
        yield running


@pytest.fixture
def address(server: PostgresServer) -> PostgresAddress:
    """A schema of a workflow, and one that daemons share, both new."""
    return parse_address(server.url, server.schema(), server.schema())


@pytest.fixture
def shared(address: PostgresAddress) -> Iterator[PostgresConnection]:
    """A connection to the shared schema, which is made."""
    connection = PostgresConnection(address.of_shared_schema())
    bring_up_to_date(connection)
    yield connection
    connection.drop()


@pytest.fixture
def join(shared: PostgresConnection, address: PostgresAddress) -> Join:
    """Lets a daemon be known by its name."""

    def joined(name: str) -> PostgresLeases:
        leases = PostgresLeases(shared, name, f"{name}:1")
        leases.join("1.2", 2.0, [address.schema])
        return leases

    return joined


def acquire(leases: PostgresLeases, workflow: str, seconds: float) -> int:
    """Take a lease that is free."""
    token = leases.acquire(leases.standings([workflow])[workflow], seconds, 0.0)
    assert token is not None
    return token


def test_all_see_who_leads_and_who_led(
    shared: PostgresConnection, address: PostgresAddress, join: Join
) -> None:
    """Living daemons with what they lead, the newest leaderships first, and how many ended how."""
    workflow, watch = address.schema, FleetWatch(shared)
    one, two = join("one"), join("two")
    first = acquire(one, workflow, 0.0)
    second = acquire(two, workflow, 600.0)
    before = watch.see([workflow, "other"], 7.0)
    two.give_back(second, "drained")
    two.drain(draining=True)
    third = acquire(one, workflow, 600.0)
    # The lease for dividing slots is none of a workflow.
    shared.execute(
        "INSERT INTO leases (workflow, token, daemon, expires)"
        " VALUES ('@slots', nextval('lease_tokens'), 'one', now() + interval '9 min')"
        " ON CONFLICT (workflow) DO UPDATE SET daemon = 'one', expires = excluded.expires"
    )
    shared.execute("UPDATE daemons SET expires = now() - interval '45 s' WHERE id = 'two'")

    after = watch.see([workflow, "other"], 8.0)

    assert [(d.name, d.is_alive, d.draining, d.leads) for d in before.daemons] == [
        ("one:1", True, False, ()),
        ("two:1", True, False, (workflow,)),
    ]
    assert [(d.name, d.is_alive, d.draining, d.leads) for d in after.daemons] == [
        ("one:1", True, False, (workflow,)),
        ("two:1", False, True, ()),
    ]
    assert 60 <= after.daemons[1].silent < 600
    assert [(one.token, one.ended_by) for one in after.last[workflow]] == [
        (third, None),
        (second, "drained"),
        (first, "expired"),
    ]
    assert before.endings == {workflow: {"expired": 1}, "other": {}}
    assert after.endings == {workflow: {"expired": 1, "drained": 1}, "other": {}}
    assert [one.token for one in read_leaderships(address, 2, None)] == [third, second]
    assert [one.token for one in read_leaderships(address, 9, second)] == [first]


async def test_old_leaderships_are_forgotten_and_go_on_counting(
    shared: PostgresConnection, address: PostgresAddress, join: Join
) -> None:
    """Those of this workflow that ended before the time from which history is kept."""
    one, other = join("one"), "other"
    one.join("1.2", 2.0, [address.schema, other])
    ended = [acquire(one, address.schema, 0.0) for _ in range(3)]
    token = acquire(one, address.schema, 600.0)
    foreign = [acquire(one, other, 0.0), acquire(one, other, 600.0)]
    shared.execute(
        "UPDATE leaderships SET until = now() - interval '9 days' WHERE token = ANY(%(old)s)",
        old=[ended[0], ended[1], foreign[0]],
    )
    watch = FleetWatch(shared)
    before = watch.see([address.schema], 7.0)
    lease = Lease(address.schema, token, "one:1", boot_time() + 600)

    async with open_postgres_store(address, lease) as store:
        for days in (8, 8):
            assert await store.forget_runs(time.time() - days * 86_400, 10) == 0
        first = FleetWatch(shared).see([address.schema], 8.0)
        assert await store.forget_runs(time.time() + 3600, 10) == 0
    second = FleetWatch(shared).see([address.schema], 9.0)

    assert [one.token for one in first.last[address.schema]] == [token, ended[2]]
    assert [one.token for one in second.last[address.schema]] == [token]
    assert before.endings == first.endings == second.endings == {address.schema: {"expired": 3}}
    assert len(FleetWatch(shared).see([other], 9.0).last[other]) == 2


def test_nothing_is_led_before_the_first_daemon(address: PostgresAddress) -> None:
    """The history is empty where the shared schema was not made."""
    assert read_leaderships(address, 5, None) == ()


def test_a_refused_write_is_counted(
    shared: PostgresConnection, address: PostgresAddress, join: Join
) -> None:
    """Once for each transaction that a newer lease has refused."""
    refused: list[int] = []
    token = acquire(join("one"), address.schema, 0.0)
    lease = Lease(address.schema, token, "one:1", boot_time() + 600, lambda: refused.append(token))
    with closing(open_postgres(address, lease)) as database:
        with database.transaction():
            database.change("prove_writable")
        written = list(refused)
        shared.execute("UPDATE leases SET token = nextval('lease_tokens')")
        for _ in range(2):
            with pytest.raises(LeaseLost), database.transaction():
                database.change("prove_writable")

    assert (written, refused) == ([], [token, token])


def checked(url: str, address: PostgresAddress, lease: float = 15.0) -> CheckResult:
    """Have the doctor look at the leases."""
    store = StoreSettings.model_construct(
        url=SecretStr(url),
        schema_name=address.schema,
        shared_schema=address.shared_schema,
        lease=lease,
    )
    return leases_result(settings_of().model_copy(update={"store": store}))


def test_the_doctor_says_who_leads(
    server: PostgresServer, address: PostgresAddress, request: pytest.FixtureRequest
) -> None:
    """Before the schema is made, while nothing leads, and while a daemon does."""
    unmade = checked(server.url, address)
    join: Join = request.getfixturevalue("join")
    one = join("one")
    free = checked(server.url, address)
    acquire(one, address.schema, 600.0)
    led, hurried = checked(server.url, address), checked(server.url, address, lease=0.001)

    may = f"the user sortie may make the schema {address.shared_schema}, as the start will"
    assert (unmade.outcome, unmade.sentence) == ("ok", may)
    alive = "leads the workflow, 1 daemon of the database lives"
    assert (free.outcome, free.sentence) == ("ok", f"no daemon {alive}")
    assert (led.outcome, led.sentence) == ("ok", f"one:1 {alive}")
    assert hurried.outcome == "warning"


def test_the_doctor_finds_a_user_without_rights(
    server: PostgresServer, address: PostgresAddress, request: pytest.FixtureRequest
) -> None:
    """Who may not make the schema, or not use it, is told what to ask for."""
    plain, url = f"plain_{address.schema}", server.url.replace("//sortie:", "//{}:")
    owner = PostgresConnection(address)
    owner.execute(f"CREATE USER {plain} PASSWORD '{PASSWORD}'")
    owner.drop()
    unmade = checked(url.format(plain), address)
    request.getfixturevalue("shared")
    foreign = checked(url.format(plain), address)

    assert unmade.outcome == foreign.outcome == "failed"
    assert "may not make one" in unmade.sentence
    assert f"may not use the schema {address.shared_schema}" in foreign.sentence
