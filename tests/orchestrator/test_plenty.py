"""Thousands of candidates for a few slots."""

from __future__ import annotations

import time
from collections import Counter

import trio
from trio.testing import MockClock

from sortie.scheduler import Decision, Event, Scheduler
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from tests.agents.fake import Chats, Completes
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue

MANY = 5000
SLOTS = 10


def crowded(count: int, **agent: object) -> World:
    """Return a world with so many candidates and ten slots."""
    return World(
        *(issue(f"i{n}") for n in range(count)),
        tracker=HANDOFF,
        agent={"max_concurrent_agents": SLOTS} | agent,
    )


async def test_as_many_run_as_there_are_slots_and_all_others_wait(clock: MockClock) -> None:
    """Each poll sees all of them, only the chosen are re-read, and a freed slot is filled from
    what is known: no candidate costs a request, a fact or a claim of its own."""
    world = crowded(MANY, max_turns=1)
    for n in range(MANY):
        world.agent.scripts[f"I{n}"] = [Chats(every=50, times=2)]
    asked: list[int] = []
    reread = world.tracker.fetch_by_ids

    async def count(ids: frozenset[str]) -> object:
        asked.append(len(ids))
        return await reread(ids)  # type: ignore[arg-type]

    setattr(world.tracker, "fetch_by_ids", count)  # noqa: B010
    async with world.life() as orchestrator:
        await trio.sleep(290)
        snapshot = orchestrator.snapshot()
        told, polls = len(world.facts), len(world.of(facts.PollCompleted))

    runs = world.of(facts.RunStarted)
    assert (len(runs), world.agent.most_at_once) == (3 * SLOTS, SLOTS)
    assert len(snapshot.worked) == SLOTS
    assert len(snapshot.claims) == SLOTS
    assert world.of(facts.PollCompleted)[0].candidates == MANY
    assert max(asked) <= SLOTS
    assert polls == 10
    assert told < 30 * len(runs)


async def test_all_that_is_startable_is_started_in_the_end(clock: MockClock) -> None:
    """Five hundred issues go through ten slots between two polls, in their order, each once."""
    world = crowded(500)
    for n in range(500):
        world.agent.scripts[f"I{n}"] = [Completes(after=0.1)]

    async with world.life():
        await world.until(facts.TransitionCompleted, 500)

    assert Counter(name for name, _ in world.agent.begun).most_common(1)[0][1] == 1
    assert world.agent.most_at_once == SLOTS
    world.tracker.assert_all_in("Review")


async def test_news_of_a_run_costs_little(clock: MockClock) -> None:
    """While all slots are taken, what agents do is handled at the cost of a few bare walks over
    the queue at most: no candidate is judged."""
    seconds = {count: await busy_time(count) for count in (50, MANY)}
    walk = min(bare_walk(MANY) for _ in range(5))

    assert seconds[MANY] - seconds[50] < 12 * walk


def bare_walk(count: int) -> float:
    """Return how long it takes to go through so many candidates and judge none."""
    entries = {f"i{n}": (n, issue(f"i{n}")) for n in range(count)}
    claims: dict[str, object] = {}
    began = time.thread_time()
    found = [(key, candidate) for key, candidate in entries.values() if candidate.id not in claims]
    found.sort(key=lambda entry: entry[0])
    assert len(found) == count
    return time.thread_time() - began


async def busy_time(count: int) -> float:
    """Return the median time that an event of a run takes, with that many candidates."""
    world = crowded(count)
    for n in range(count):
        world.agent.scripts[f"I{n}"] = [Chats(every=10, times=30)]
    spent: list[float] = []
    handle = Scheduler.handle

    def timed(self: Scheduler, event: Event, now: float) -> list[Decision]:
        began = time.thread_time()
        decisions = handle(self, event, now)
        if isinstance(event, ev.TurnStarted):  # a slot may be free now: the queue is looked at
            spent.append(time.thread_time() - began)
        return decisions

    Scheduler.handle = timed  # type: ignore[method-assign]
    try:
        async with world.life():
            await world.until(facts.AgentLaunched, SLOTS)
            await trio.sleep(5)
    finally:
        Scheduler.handle = handle  # type: ignore[method-assign]
    assert len(spent) == SLOTS
    return sorted(spent)[len(spent) // 2]
