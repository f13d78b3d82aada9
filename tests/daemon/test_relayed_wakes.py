"""What webhooks have named at a standby comes to the leader, or is told to be lost."""

from __future__ import annotations

from collections.abc import Callable

import trio
from trio.testing import MockClock

from sortie.daemon.relayed_wakes import KEPT, WAKE, RelayedWakes, told_of_wake
from sortie.facts import Fact
from sortie.facts.webhooks import WebhookLost
from sortie.model.webhooks import Mention
from sortie.scheduler.events import DeliveriesSeen
from sortie.store.relay import RelayedAnswer, RelayedRequest, Unanswered

HERE = ("acme/web",)


def event(number: int, kind: str = "github", waited: float = 1.0) -> DeliveriesSeen:
    """Return deliveries that name an issue."""
    return DeliveriesSeen(kind, (Mention(places=HERE, issues=(str(number),)),), waited)


class Leader:
    """A leader that other daemons reach when ``is_there``."""

    def __init__(self, *, is_there: bool = True) -> None:
        self.is_there = is_there
        self.told: list[DeliveriesSeen] = []
        self.asked: list[RelayedRequest] = []

    async def ask(self, request: RelayedRequest) -> RelayedAnswer:
        """Answer as the daemon that leads."""
        await trio.sleep(0.1)
        self.asked.append(request)
        if not self.is_there:
            raise Unanswered("no daemon leads this workflow now")
        return told_of_wake(request, self.told.append)


async def passed_on(
    leader: Leader, act: Callable[[RelayedWakes], object], for_: float
) -> list[Fact]:
    """Pass on what ``act`` tells, and return the facts after a while."""
    facts: list[Fact] = []
    wakes = RelayedWakes(leader, facts.append)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wakes.run)
        act(wakes)
        await trio.sleep(for_)
        nursery.cancel_scope.cancel()
    return facts


async def test_wakes_go_together_one_request_at_a_time(autojump_clock: MockClock) -> None:
    """Each kind by itself; by a method that no client of HTTP can send."""
    assert autojump_clock
    leader = Leader()

    def act(wakes: RelayedWakes) -> None:
        for number in range(50):
            wakes(event(number))
        wakes(event(1, "jira", waited=3.0))

    assert await passed_on(leader, act, 5.0) == []

    github, jira = leader.told
    (mention,) = github.mentions
    assert mention.issues == tuple(map(str, range(50)))
    assert jira.waited >= 3.0
    assert {request.method for request in leader.asked} == {WAKE}


async def test_a_leader_that_comes_soon_is_told(autojump_clock: MockClock) -> None:
    """A workflow is taken over within seconds; the time of it counts as waited."""
    assert autojump_clock
    leader = Leader(is_there=False)

    async def come() -> None:
        await trio.sleep(10)
        leader.is_there = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come)
        facts = await passed_on(leader, lambda wakes: wakes(event(7)), 20.0)

    assert facts == []
    (told,) = leader.told
    assert told.waited >= 10


async def test_what_has_no_leader_is_lost_and_told(autojump_clock: MockClock) -> None:
    """And what comes later is passed on."""
    assert autojump_clock
    leader = Leader(is_there=False)

    facts = await passed_on(leader, lambda wakes: wakes(event(7)), KEPT + 10.0)

    assert facts == [WebhookLost(kind="github", error="no daemon leads this workflow now")]


def test_what_a_leader_does_not_understand_is_refused() -> None:
    """As from a daemon of another version."""
    told: list[DeliveriesSeen] = []

    for target in ("", "{}", '{"kind":7}', "/api/v1/pause", "[" * 100_000):
        request = RelayedRequest(id="1", workflow="w", method=WAKE, target=target, caller="token")
        assert told_of_wake(request, told.append).status == 400

    assert told == []
