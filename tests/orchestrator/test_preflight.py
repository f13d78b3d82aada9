"""A preflight is made for candidates, and for nobody only now and then."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.orchestrator.preflight import KEPT, READY, Preflight, Readiness
from sortie.telemetry import facts
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue

OFTEN = {"interval_ms": 5000}


class CountedWorld(World):
    """Counts the looks."""

    looks = 0

    async def _preflight(self) -> Readiness:
        self.looks += 1
        return await super()._preflight()


async def test_polls_that_find_nothing_share_a_good_look(clock: MockClock) -> None:
    """Many polls of an empty tracker make one look in KEPT seconds."""
    world = CountedWorld(polling=OFTEN)

    async with world.life():
        await trio.sleep(4 * KEPT + 1)
        polls = len(world.of(facts.PollCompleted))

    assert (polls, world.looks) == (21, 5)


async def test_what_is_found_is_judged_by_a_look_of_its_own(clock: MockClock) -> None:
    """A fault that came since the last look keeps the first candidate from a start."""
    world = CountedWorld(polling=OFTEN, tracker=HANDOFF)

    async with world.life() as orchestrator:
        await world.until(facts.PollCompleted)
        world.readiness = Readiness(fault="the workspace root is gone")
        world.tracker.put(issue("a"))
        await trio.sleep(6)
        skipped, started = orchestrator.snapshot().skipped, world.of(facts.RunStarted)
        world.readiness = READY
        await world.until(facts.TransitionCompleted)

    assert (skipped, started) == ("the workspace root is gone", [])


async def test_a_look_that_found_something_is_made_again_at_once(clock: MockClock) -> None:
    """While not all is well every poll looks, so that the end of it is seen."""
    world = CountedWorld(polling=OFTEN)
    world.readiness = Readiness(hindrance="there is no agent")

    async with world.life() as orchestrator:
        await trio.sleep(16)
        looks = world.looks
        world.readiness = READY
        await trio.sleep(5)
        hindrance = orchestrator.snapshot().hindrance

    assert (looks, hindrance) == (4, None)


@pytest.mark.parametrize("change", ["time", "circumstances", "crash"])
async def test_a_good_look_is_worth_nothing_after(change: str, clock: MockClock) -> None:
    """It is forgotten with time, under other circumstances, and by a look that fails."""
    settings, broken = ["a"], False

    async def look() -> Readiness:
        await trio.lowlevel.checkpoint()
        if broken:
            raise LookupError
        return READY

    preflight = Preflight(look, lambda: settings[0])
    before = preflight.was_good()
    await preflight.look()
    after = preflight.was_good()
    if change == "time":
        await trio.sleep(KEPT)
    elif change == "circumstances":
        settings[0] = "b"
    else:
        broken = True
        with pytest.raises(LookupError):
            await preflight.look()

    assert (before, after, preflight.was_good()) == (False, True, False)
