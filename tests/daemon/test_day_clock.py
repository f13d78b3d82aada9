"""What day it is, told to the orchestrator."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trio
from trio.testing import MockClock

from sortie.daemon.day_clock import CLOCK_PERIOD, day_of, keep_days
from sortie.model import AgentError, ErrorKind, Spending, StoreError
from sortie.store import Store
from sortie.telemetry import facts
from tests.agents.fake import Completes, Raises
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue


@pytest.mark.parametrize(
    ("zone", "hour", "day"),
    [
        ("UTC", 23, "2026-11-22"),
        ("Europe/Berlin", 23, "2026-11-23"),
        ("America/New_York", 3, "2026-11-21"),
    ],
)
def test_a_day_is_that_of_its_zone(zone: str, hour: int, day: str) -> None:
    """Midnight comes at another time in each."""
    at = datetime(2026, 11, 22, hour, tzinfo=UTC).timestamp()

    assert day_of(zone, at) == day


async def test_a_spent_budget_is_renewed_at_midnight(clock: MockClock) -> None:
    """The next issue runs on the next day, within a look at the clock."""
    world = World(issue("a"), issue("b"), budget={"daily_credits": 1.0}, tracker=HANDOFF)
    world.settings = world.settings.model_copy(
        update={"agent": world.settings.agent.model_copy(update={"max_concurrent_agents": 1})}
    )
    for name in "AB":
        world.agent.scripts[name] = [Completes(credits=1.0)]
    until_midnight = 86_400 - world.wall() % 86_400

    async with world.life() as orchestrator, trio.open_nursery() as nursery:
        await nursery.start(keep_days, orchestrator, world.store, world.wall)
        await trio.sleep(until_midnight - 1)
        assert len(world.agent.begun) == 1
        assert orchestrator.snapshot().day_spent is not None
        await trio.sleep(CLOCK_PERIOD + 5)
        assert len(world.agent.begun) == 2
        nursery.cancel_scope.cancel()


class ForgetfulStore:
    """A store that cannot say for a while what was spent on a day."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.fails = False

    async def spent_on(self, day: str) -> Spending | None:
        """See Store."""
        if self.fails:
            raise StoreError("the disk is away")
        return await self._store.spent_on(day)


async def test_a_day_that_nobody_could_tell_of_begins_a_little_later(clock: MockClock) -> None:
    """Where the store fails at midnight, the budget of the day before does not last all day."""
    world = World(issue("a"), issue("b"), budget={"daily_credits": 1.0}, tracker=HANDOFF)
    world.settings = world.settings.model_copy(
        update={"agent": world.settings.agent.model_copy(update={"max_concurrent_agents": 1})}
    )
    for name in "AB":
        world.agent.scripts[name] = [Completes(credits=1.0)]
    store = ForgetfulStore(world.store)
    until_midnight = 86_400 - world.wall() % 86_400

    async with world.life() as orchestrator, trio.open_nursery() as nursery:
        await nursery.start(keep_days, orchestrator, store, world.wall)
        await trio.sleep(until_midnight - 1)
        store.fails = True
        await trio.sleep(4 * CLOCK_PERIOD)
        assert len(world.agent.begun) == 1
        store.fails = False
        await trio.sleep(CLOCK_PERIOD + 5)
        assert len(world.agent.begun) == 2
        nursery.cancel_scope.cancel()


async def test_a_limit_ends_by_the_time_of_day(clock: MockClock) -> None:
    """While the machine slept only the clock on the wall went on."""
    world = World(issue(), tracker=HANDOFF)
    slept = 0.0
    resets_at = datetime.fromtimestamp(world.wall() + 7200, UTC)
    met = AgentError(ErrorKind.USAGE_LIMIT, "limit reached", resets_at=resets_at)
    world.agent.scripts["A"] = [Raises(error=met), Completes()]

    async with world.life() as orchestrator, trio.open_nursery() as nursery:
        await nursery.start(keep_days, orchestrator, world.store, lambda: world.wall() + slept)
        await trio.sleep(100)
        assert len(world.agent.begun) == 1
        slept = 7200.0
        await trio.sleep(CLOCK_PERIOD + 1)
        assert len(world.agent.begun) == 2
        nursery.cancel_scope.cancel()

    assert len(world.of(facts.AgentLimitEnded)) == 1
