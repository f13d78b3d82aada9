"""Notifications are on disk with what they tell of, or neither is."""

from __future__ import annotations

from collections.abc import Sequence

import trio
from trio.testing import MockClock

from sortie.model import AgentError, ErrorKind, StoreError
from sortie.model.notifications import HELD, RUN_FAILED, Notice
from sortie.store.outbox import Outbox
from sortie.telemetry import facts
from tests.agents.fake import Raises
from tests.notifications.rig import target
from tests.notifications.test_maker import maker
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue

TARGET = target(webhook="https://example.com/hook")


def failing_world() -> World:
    world = World(issue("a"), tracker=HANDOFF, agent={"max_sessions": 1})
    world.agent.scripts["A"] = [Raises(error=AgentError(ErrorKind.TURN_FAILED, "no luck"))]
    world.notify = maker(TARGET).with_notifications
    return world


async def waiting(world: World) -> Sequence[Notice]:
    """Return what waits to be told."""
    found = await Outbox(world.store).turn("webhook", (), 10, None, world.wall())
    return [one.notification for one in found]


async def test_a_failure_and_its_hold_are_told(clock: MockClock) -> None:
    """In the order in which they came, with the run and its issue, and once."""
    world = failing_world()

    async with world.life():
        await world.until(facts.IssueHeld)
        recorded = world.of(facts.NotificationRecorded)

    failed, held = await waiting(world)
    assert [fact.about for fact in recorded] == [RUN_FAILED, HELD]
    assert (failed.event, held.event) == (RUN_FAILED, HELD)
    assert failed.run_id == (await world.history())[0].run_id
    assert held.issue is not None
    assert held.issue.identifier == "A"
    assert failed.text.splitlines()[:2] == [
        "A run failed: turn_failed: no luck",
        "The issue is held.",
    ]


async def test_nothing_is_told_of_that_is_not_on_disk(clock: MockClock) -> None:
    """While the disk fails neither the hold nor its notification is there; then both are."""
    world = failing_world()
    broken = trio.Event()

    async def break_disk(_params: object) -> None:
        world.store.failing = StoreError("disk full")
        broken.set()

    world.agent.before_launch = break_disk
    async with world.life():
        await broken.wait()
        await trio.sleep(60)
        meanwhile = world.of(facts.NotificationRecorded)
        world.store.failing = None
        await world.until(facts.IssueHeld)
        held = (await world.store.recover()).holds

    assert meanwhile == []
    assert len(held) == 1
    assert [one.event for one in await waiting(world)] == [RUN_FAILED, HELD]


async def test_what_was_decided_and_not_committed_is_decided_again(clock: MockClock) -> None:
    """A daemon that is killed before the commit has told nothing, and the next one does."""
    world = failing_world()
    reached = trio.Event()

    async def break_disk(_params: object) -> None:
        world.store.failing = StoreError("killed")
        reached.set()

    world.agent.before_launch = break_disk
    async with world.life_cut_short():
        await reached.wait()
        await trio.sleep(5)
    world.store.failing = None
    first = await waiting(world)
    world.agent.before_launch = None
    world.agent.scripts["A"] = [Raises(error=AgentError(ErrorKind.TURN_FAILED, "no luck"))]
    async with world.life():
        await world.until(facts.IssueHeld)

    assert first == []
    assert HELD in [one.event for one in await waiting(world)]
