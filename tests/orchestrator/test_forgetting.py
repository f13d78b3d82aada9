"""What was kept for runs and commands goes with them."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from sortie.scheduler import events as ev
from tests.agents.fake import Completes, Fails
from tests.growth import held
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue


async def test_runs_that_are_over_leave_nothing(clock: MockClock) -> None:
    """However they ended and whatever they used."""
    world = World(*(issue(name) for name in "abcdef"), tracker=HANDOFF)
    for name in "ABC":
        world.agent.scripts[name] = [Completes(credits=0.5)]
    for name in "DEF":
        world.agent.scripts[name] = [Fails(), Completes(credits=0.25)]

    async with world.life() as orchestrator:
        workers = orchestrator._performer.workers
        before = held(workers._issues) + held(workers._spent) + held(workers._scopes)
        await orchestrator.idle.wait()
        after = held(workers._issues) + held(workers._spent) + held(workers._scopes)

    assert len(await world.history()) == 9
    assert (before, after) == (0, 0)


async def test_commands_that_were_answered_leave_nothing(clock: MockClock) -> None:
    """Nor do those that nobody waited for any more."""
    world = World(tracker=HANDOFF)

    async with world.life() as orchestrator:
        commands = orchestrator._performer.commands
        answers = [
            await orchestrator.ask(lambda number: ev.PauseAsked(True, number)) for _ in range(3)
        ]
        with trio.move_on_after(0):
            await orchestrator.ask(lambda number: ev.PauseAsked(False, number))
        left = held(commands._pending)

    assert None not in answers
    assert left == 0
