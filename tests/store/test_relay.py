"""Requests to leaders on a real server: each is taken at most once, by the newest lease."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from sortie.store.postgres_address import PostgresAddress, parse_address
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.postgres_leases import PostgresLeases
from sortie.store.postgres_relay import PostgresRelay
from sortie.store.postgres_shared import bring_up_to_date
from sortie.store.relay import RelayedAnswer, RelayedRequest, Withdrawn
from tests.store.postgres_server import PostgresServer

LONG = 600.0
ANSWER = RelayedAnswer(status=200, headers={"content-type": "text/plain"}, body=b"\x00\xffdone")


class Machine:
    """A daemon with its leases and its relay."""

    def __init__(self, address: PostgresAddress, name: str) -> None:
        self.workflow = address.schema
        self.connection = PostgresConnection(address.of_shared_schema())
        bring_up_to_date(self.connection)
        self.leases = PostgresLeases(self.connection, name, f"{name}:1")
        self.leases.join("1", 1.0, [self.workflow])
        self.relay = PostgresRelay(self.connection, name)

    def lead(self, seconds: float = LONG) -> int:
        """Lead the workflow; return the token."""
        standing = self.leases.standings([self.workflow])[self.workflow]
        token = self.leases.acquire(standing, seconds, 0.0)
        assert token is not None
        return token

    def request(self, id_: str = "1") -> RelayedRequest:
        """A command for the workflow."""
        return RelayedRequest(
            id=id_,
            workflow=self.workflow,
            method="POST",
            target="/api/v1/issues/a%2Fb/stop?x=1",
            caller="session",
            accept="text/html",
            sent=b'{"text": "\xc3\xbc"}',
            sent_type="application/json",
        )


@pytest.fixture
def machines(postgres_server: PostgresServer) -> Iterator[tuple[Machine, Machine]]:
    """Two daemons; the first one leads nothing yet."""
    schema, shared = postgres_server.schema(), postgres_server.schema()
    address = parse_address(postgres_server.url, schema, shared)
    both = Machine(address, "leader"), Machine(address, "asked")
    yield both
    for each in both:
        each.connection.drop()


def test_a_request_is_answered_once(machines: tuple[Machine, Machine]) -> None:
    """The leader gets it whole, no second time, and the answer comes back byte for byte."""
    leader, asked = machines
    token = leader.lead()
    request = asked.request()

    named = asked.relay.put(request, LONG)
    taken = leader.relay.take([token])
    again = leader.relay.take([token])
    before = asked.relay.answers(["1"])
    leader.relay.answer(taken[0], ANSWER)
    answers = asked.relay.answers(["1"]), asked.relay.answers(["1"])

    assert named == "leader:1"
    assert [each.token for each in taken] == [token]
    assert (taken[0].method, taken[0].target) == (request.method, request.target)
    assert (taken[0].caller, taken[0].accept) == ("session", "text/html")
    assert (again, before) == ([], {})
    assert answers == ({"1": ANSWER}, {})


def test_without_a_leader_nothing_is_put(machines: tuple[Machine, Machine]) -> None:
    """Neither before there was one, nor after its lease is over or given back."""
    leader, asked = machines

    never = asked.relay.put(asked.request("1"), LONG)
    token = leader.lead(seconds=0.0)
    over = asked.relay.put(asked.request("2"), LONG)
    leader.leases.renew({token: LONG})
    leader.leases.give_back(token, "released")
    given_back = asked.relay.put(asked.request("3"), LONG)

    assert (never, over, given_back) == (None, None, None)
    assert asked.relay.withdraw("1") == Withdrawn(was_taken=None)


def test_a_former_leader_takes_nothing(machines: tuple[Machine, Machine]) -> None:
    """What was put to it goes to its successor, and its late answer is not taken for that one's."""
    leader, asked = machines
    former = leader.lead(seconds=0.0)
    leader.leases.renew({former: LONG})
    asked.relay.put(asked.request("early"), LONG)
    early = leader.relay.take([former])
    asked.relay.put(asked.request("late"), LONG)
    leader.leases.renew({former: 0.0})

    expired = leader.relay.take([former])
    newest = asked.lead()
    outdated = leader.relay.take([former])
    taken = asked.relay.take([newest])
    leader.relay.answer(replace(taken[0], token=former), ANSWER)

    assert [each.id for each in early] == ["early"]
    assert (expired, outdated) == ([], [])
    assert [each.id for each in taken] == ["late"]
    assert asked.relay.answers(["late"]) == {}


def test_what_is_withdrawn_is_not_taken_any_more(machines: tuple[Machine, Machine]) -> None:
    """And it is known of each request whether it was taken, or answered at the last moment."""
    leader, asked = machines
    token = leader.lead()
    for id_ in ("waiting", "taken", "answered"):
        asked.relay.put(asked.request(id_), LONG)
        if id_ == "waiting":
            waiting = asked.relay.withdraw(id_)
        else:
            (request,) = leader.relay.take([token])
    leader.relay.answer(request, ANSWER)

    assert waiting == Withdrawn(was_taken=False)
    assert leader.relay.take([token]) == []
    assert asked.relay.withdraw("taken") == Withdrawn(was_taken=True)
    assert asked.relay.withdraw("answered") == ANSWER


def test_what_is_too_old_is_not_taken_and_forgotten(machines: tuple[Machine, Machine]) -> None:
    """A command whose sender has left is not carried out later, and no row stays for ever."""
    leader, asked = machines
    token = leader.lead()
    asked.relay.put(asked.request("old"), -120.0)
    asked.relay.put(asked.request("new"), LONG)

    taken = leader.relay.take([token])
    asked.relay.forget_the_old()

    assert [each.id for each in taken] == ["new"]
    assert asked.relay.withdraw("old") == Withdrawn(was_taken=None)
