"""Requests between processes: what becomes of one whose leader answers, is silent or is away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
import trio
from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from sortie.daemon.relay import Relay
from sortie.daemon.relayed_leader import answer_relayed
from sortie.daemon.relayed_wakes import RelayedWakes
from sortie.facts import Fact
from sortie.model.webhooks import Mention
from sortie.resources import run_in_thread
from sortie.resources.lease import Lease, boot_time
from sortie.scheduler.events import DeliveriesSeen
from sortie.store.postgres_address import PostgresAddress, parse_address
from sortie.store.relay import RelayedAnswer, RelayedRequest, Unanswered
from tests.store.postgres_server import PostgresServer
from tests.store.test_relay import Machine

NEVER = 600.0


@pytest.fixture
def address(postgres_server: PostgresServer) -> PostgresAddress:
    """A workflow of its own."""
    names = postgres_server.schema(), postgres_server.schema()
    return parse_address(postgres_server.url, *names)


@pytest.fixture
async def relay(address: PostgresAddress) -> AsyncIterator[Callable[[float], Relay]]:
    """Make the relay of a process, whose leaders have so many seconds."""
    made: list[Relay] = []

    def make(limit: float) -> Relay:
        made.append(Relay(address.of_shared_schema(), f"daemon-{len(made)}", limit))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        await run_in_thread(each.close)


@pytest.fixture
def lease(address: PostgresAddress) -> Lease:
    """The lease of a leader."""
    leader = Machine(address, "leader")
    token = leader.lead()
    leader.connection.drop()
    return Lease(address.schema, token, "leader:1", boot_time() + NEVER)


def command(lease: Lease, method: str = "POST") -> RelayedRequest:
    """A request for the leader."""
    return RelayedRequest(
        id="", workflow=lease.workflow, method=method, target="/x", caller="token"
    )


async def test_many_requests_are_answered_each_with_its_own(
    relay: Callable[[float], Relay], lease: Lease
) -> None:
    """Also when they come together, and from several processes."""
    leader, asked = relay(NEVER), [relay(NEVER), relay(NEVER)]
    leader.serve(
        lease,
        lambda request: leader.answer(
            request, RelayedAnswer(status=200, body=request.target.encode())
        ),
    )
    found: dict[str, bytes] = {}

    async def ask(number: int) -> None:
        request = RelayedRequest(
            id="", workflow=lease.workflow, method="GET", target=f"/{number}", caller="anybody"
        )
        found[request.target] = (await asked[number % 2].ask(request)).body

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(ask, number)

    assert found == {f"/{number}": f"/{number}".encode() for number in range(20)}


class StandbysWay:
    """The way of a standby to the leader of a workflow."""

    def __init__(self, relay: Relay, workflow: str) -> None:
        self._relay = relay
        self._workflow = workflow

    async def ask(self, request: RelayedRequest) -> RelayedAnswer:
        """Ask through the database."""
        return await self._relay.ask(replace(request, workflow=self._workflow))


async def no_route(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Stand for the application of a leader that is asked nothing over HTTP."""
    pytest.fail("it is no request over HTTP")


async def test_what_webhooks_have_named_comes_to_the_leader(
    relay: Callable[[float], Relay], lease: Lease
) -> None:
    """Through the database, and by no route of its application."""
    leader, standby = relay(NEVER), relay(NEVER)
    told: list[DeliveriesSeen] = []
    facts: list[Fact] = []
    event = DeliveriesSeen("github", (Mention(places=("acme/web",), numbers=(5,)),), 1.0)
    wakes = RelayedWakes(
        StandbysWay(standby, lease.workflow),  # type: ignore[arg-type]
        facts.append,
    )

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                answer_relayed, leader, lease, no_route, "", facts.append, told.append
            )
            nursery.start_soon(wakes.run)
            wakes(event)
            while not told:
                await trio.sleep(0.05)
            nursery.cancel_scope.cancel()

    (seen,) = told
    assert seen.mentions == event.mentions
    assert seen.waited >= 1.0
    assert facts == []


async def test_a_leader_that_takes_nothing_has_done_nothing(
    relay: Callable[[float], Relay], lease: Lease
) -> None:
    """And the request is never carried out later."""
    limit, told = 0.2, ""
    while "leader:1, which leads" not in told:
        with pytest.raises(Unanswered, match=r"nothing was done|does not answer") as caught:
            await relay(limit).ask(command(lease))
        told = str(caught.value)
        limit *= 2  # the machine is slow

    assert told.endswith("nothing was done")
    taken: list[RelayedRequest] = []
    late = relay(NEVER)
    late.serve(lease, taken.append)
    answered = await _answered_after(late, lease, taken)
    assert answered == ["/marker"]


async def _answered_after(late: Relay, lease: Lease, taken: list[RelayedRequest]) -> list[str]:
    """Return what a leader took until it got a later request."""
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            marker = RelayedRequest(
                id="", workflow=lease.workflow, method="GET", target="/marker", caller="token"
            )
            nursery.start_soon(late.ask, marker)
            while not taken:
                await trio.sleep(0.01)
            late.answer(taken[-1], RelayedAnswer(status=200))
    return [each.target for each in taken]


@pytest.mark.parametrize(("method", "told"), [("POST", "is not known"), ("GET", "ask again")])
async def test_a_leader_that_dies_leaves_open_what_it_has_done(
    relay: Callable[[float], Relay], lease: Lease, method: str, told: str
) -> None:
    """Whoever asked is told so, after the request was taken and not answered."""
    taken: list[RelayedRequest] = []
    relay(NEVER).serve(lease, taken.append)
    limit = 1.0
    while True:
        with pytest.raises(Unanswered) as caught:
            await relay(limit).ask(command(lease, method))
        if taken:
            break
        limit *= 2  # the machine is slow

    assert told in str(caught.value)
    assert "leader:1" in str(caught.value)


async def test_a_lease_that_is_over_takes_nothing(
    relay: Callable[[float], Relay], lease: Lease
) -> None:
    """Though the server does not know that yet."""
    taken: list[RelayedRequest] = []
    lease.valid_until = boot_time()
    relay(NEVER).serve(lease, taken.append)

    with pytest.raises(Unanswered):
        await relay(1.0).ask(command(lease))

    assert taken == []


async def test_without_a_leader_that_is_said(
    relay: Callable[[float], Relay], address: PostgresAddress
) -> None:
    """At once: nothing is waited for."""
    lease = Lease(address.schema, 1, "nobody:1", boot_time() + NEVER)

    with trio.fail_after(60), pytest.raises(Unanswered, match="no daemon leads"):
        await relay(NEVER).ask(command(lease))


async def test_without_a_server_that_is_said(address: PostgresAddress) -> None:
    """With the reason, and that nothing was done."""
    gone = parse_address("postgresql://sortie:x@127.0.0.1:1/sortie", address.schema)
    relay = Relay(gone.of_shared_schema(), "d")
    relay.start()
    lease = Lease(address.schema, 1, "nobody:1", boot_time() + NEVER)

    with trio.fail_after(60), pytest.raises(Unanswered, match=r"cannot ask .* nothing was done"):
        await relay.ask(command(lease))

    await run_in_thread(relay.close)
