"""Thousands of candidates for a few slots."""

from __future__ import annotations

from collections import Counter

import trio
from trio.testing import MockClock

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
