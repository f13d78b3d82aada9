"""What runs and removals ask of a host is served in the order in which they began."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable

from trio.testing import MockClock

from sortie.telemetry import facts
from sortie.transports.rank import rank
from tests.agents.fake import Completes
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue


def watch(world: World, method: str) -> dict[str, list[int]]:
    """Return the ranks with which a method of the files is called, by the path's last name."""
    seen: dict[str, list[int]] = defaultdict(list)
    original: Callable[..., Awaitable[object]] = getattr(world.transport.files, method)

    async def watched(root: str, path: str) -> object:
        seen[os.path.basename(path)].append(rank())
        return await original(root, path)

    setattr(world.transport.files, method, watched)
    return seen


async def test_all_steps_of_a_run_have_its_rank_in_the_order_of_dispatch(clock: MockClock) -> None:
    """Those of its second turn too; what comes later has a higher one."""
    names = [f"I{number}" for number in range(4)]
    world = World(*(issue(name.lower()) for name in names), tracker=HANDOFF, agent={"max_turns": 2})
    for name in names:
        world.agent.scripts[name] = [Completes(after=1), Completes(after=1)]
    ranks = watch(world, "contained")

    async with world.life():
        await world.until(facts.TransitionCompleted, len(names))

    started = [run.issue.identifier for run in world.of(facts.RunStarted)]
    assert sorted(started) == names
    assert all(len(ranks[name]) > 2 for name in names)
    assert {len(set(ranks[name])) for name in names} == {1}
    assert sorted(started, key=lambda name: ranks[name][0]) == started


async def test_all_steps_of_a_removal_have_its_rank(clock: MockClock) -> None:
    """It stands behind the run that it follows."""
    world = World(issue())
    world.agent.scripts["A"] = [Completes(does=lambda: world.tracker.edit("a", state="Done"))]
    looked, removed = watch(world, "contained"), watch(world, "remove_directory")

    async with world.life():
        await world.until(facts.WorkspaceRemoved)

    assert looked["A"][-1:] == removed["A"]
    assert looked["A"][0] < looked["A"][-1]
