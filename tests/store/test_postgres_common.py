"""What leaders tell each other in the shared schema, on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from sortie.scheduler.allocator import SlotMember
from sortie.scheduler.common_slots import SlotReport, ToldGrants
from sortie.scheduler.common_usage import ClaimTrial, PutMet, PutOver
from sortie.scheduler.grants import SlotGrant, SlotUse
from sortie.scheduler.usage_limits import UsageLimit
from sortie.store.postgres_address import parse_address
from sortie.store.postgres_common import SLOTS, CommonTables
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.postgres_leases import PostgresLeases
from sortie.store.postgres_shared import bring_up_to_date
from tests.store.postgres_server import PostgresServer, postgres_running

ACCOUNT = "kiro kiro-cli"
LIMIT = UsageLimit(
    account=ACCOUNT,
    message="no more for now",
    since=0.0,
    until=0.0,
    resets_at=datetime(2026, 11, 28, 20, 0, 0, 123, UTC),
    met_here=True,
)
MEMBER = SlotMember(
    weight=2,
    cap=4,
    host_cap=1,
    hosts=("east", "local box"),
    use=SlotUse(used=1, by_host={"east": 1}, more=2, more_by_host={"east": 2}),
)
GRANT = SlotGrant(number=3, slots=2, total=5, hosts={"east": 1})


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of this module."""
    with postgres_running() as running:
        yield running


class Daemon:
    """A daemon's session in a shared schema."""

    def __init__(self, server: PostgresServer, schema: str, name: str) -> None:
        address = parse_address(server.url, "none", schema).of_shared_schema()
        self.connection = PostgresConnection(address)
        bring_up_to_date(self.connection)
        self.tables = CommonTables(self.connection)
        self.leases = PostgresLeases(self.connection, name, f"{name}:1")
        self.tables.begin_session()

    def lead(self, workflow: str, seconds: float = 60.0) -> int:
        """Acquire the lease of a workflow, or the one for dividing; return its token."""
        if workflow != SLOTS:
            self.leases.join("1", 1.0, [workflow])
        standing = self.leases.standings([workflow])[workflow]
        token = self.leases.acquire(standing, seconds, 0.0)
        assert token is not None
        return token


@pytest.fixture
def pair(server: PostgresServer) -> Iterator[tuple[Daemon, Daemon]]:
    """Two daemons that share a schema."""
    schema = server.schema()
    both = Daemon(server, schema, "a"), Daemon(server, schema, "b")
    yield both
    for each in both:
        each.connection.drop()


def test_a_report_counts_only_from_the_leader_and_in_order(pair: tuple[Daemon, Daemon]) -> None:
    """Neither an older report of a leader nor one of a former leader replaces what is known."""
    one, two = pair
    former = one.lead("w", 0.0)
    first = SlotReport(token=former, number=1, member=MEMBER, most=5)
    second = replace(first, number=2, member=None)
    one.tables.put_reports({"w": second})
    one.tables.put_reports({"w": first})
    assert two.tables.reports() == ({"w": second}, frozenset())

    later = SlotReport(token=two.lead("w"), number=1, member=MEMBER)
    two.tables.put_reports({"w": later})
    one.tables.put_reports({"w": replace(first, number=9)})

    assert one.tables.reports() == ({"w": later}, frozenset({"w"}))


def test_only_the_daemon_that_divides_tells_grants(pair: tuple[Daemon, Daemon]) -> None:
    """Once another daemon divides, what the former one still sends is refused, and changes
    nothing; a leader knows whether a daemon divides at all."""
    one, two = pair
    told = {"w": ToldGrants(token=7, grants=(GRANT, replace(GRANT, number=4, slots=1)))}
    assert one.tables.grants(["w"]).divider is None
    former = one.lead(SLOTS, 0.0)
    assert one.tables.put_grants(former, told)
    assert two.tables.grants(["w"]).divider is None

    token = two.lead(SLOTS)
    assert not one.tables.put_grants(former, {"w": ToldGrants(token=7, grants=())})
    assert not one.tables.renew(former, 60.0)

    own = one.tables.grants(["w", "x"])
    assert (own.divider, own.told) == (token, told)
    assert two.tables.all_grants() == told
    assert two.tables.renew(token, 60.0)


def test_a_usage_limit_is_met_tried_by_one_and_over(pair: tuple[Daemon, Daemon]) -> None:
    """It is known to the other daemon; the claim to try it is one leader's; it is over once."""
    one, two = pair
    met, tries = one.lead("w"), two.lead("x")
    one.tables.put("w", met, PutMet(LIMIT, 0.0, True))
    known = two.tables.limits([ACCOUNT])[ACCOUNT]
    assert (known.message, known.resets_at, known.over) == (LIMIT.message, LIMIT.resets_at, False)
    assert (known.generation, known.met_by, known.left <= 0) == (1, met, True)

    two.tables.put("x", tries, ClaimTrial(ACCOUNT, 1))
    one.tables.put("w", met, ClaimTrial(ACCOUNT, 1))
    claimed = one.tables.limits([ACCOUNT])[ACCOUNT]
    assert claimed.is_claimed_by(tries)
    assert not claimed.is_claimed_by(met)

    two.tables.put("x", tries, PutOver(ACCOUNT, 1))
    over = one.tables.limits([ACCOUNT])[ACCOUNT]
    assert (over.generation, over.over, over.claimed_by) == (2, True, None)
    one.tables.put("w", met, PutOver(ACCOUNT, 1))
    assert one.tables.limits([ACCOUNT])[ACCOUNT].generation == 2


def test_what_is_met_while_a_limit_is_in_force_does_not_prolong_it(
    pair: tuple[Daemon, Daemon],
) -> None:
    """Unless more becomes known of its end; and what a workflow only recalls replaces nothing."""
    one, two = pair
    first, second = one.lead("w"), two.lead("x")
    blind = replace(LIMIT, resets_at=None)
    one.tables.put("w", first, PutMet(blind, 60.0, True))
    two.tables.put("x", second, PutMet(blind, 600.0, True))
    assert one.tables.limits([ACCOUNT])[ACCOUNT].generation == 1

    two.tables.put("x", second, PutMet(LIMIT, 600.0, True))
    known = one.tables.limits([ACCOUNT])[ACCOUNT]
    assert (known.generation, known.resets_at, known.left > 500) == (2, LIMIT.resets_at, True)

    two.tables.put("x", second, PutOver(ACCOUNT, 2))
    one.tables.put("w", first, PutMet(blind, 60.0, False))
    assert one.tables.limits([ACCOUNT])[ACCOUNT].over


def test_a_former_leader_puts_nothing_on_record(pair: tuple[Daemon, Daemon]) -> None:
    """What it met, claims or has over is refused without an error."""
    one, two = pair
    former = one.lead("w", 0.0)
    two.lead("w")

    one.tables.put("w", former, PutMet(LIMIT, 60.0, True))

    assert one.tables.limits([ACCOUNT]) == {}
