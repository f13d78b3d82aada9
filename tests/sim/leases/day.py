"""One day of several daemons: troubles, then none, then the verdict."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass

import trio

from sortie.scheduler.rendezvous import preferred
from tests.sim.leases.schedule import LeaseSchedule
from tests.sim.leases.timed_lease import leases_by_simulated_clocks
from tests.sim.leases.world import LeaseWorld
from tests.sim.system.determinism import run_seeded
from tests.sim.system.run import RAM, rendered_inline
from tests.sim.system.trace import Trace

STEPS = 10
IDLE_WITHIN = 3600.0
"""Seconds of virtual time in which a healed world must come to rest."""


@dataclass(frozen=True, slots=True)
class LeaseDay:
    """A day that is over. ``leaderships`` counts the tokens that were given, by what ended them;
    ``longest`` is the longest time that a workflow was without a leader that could have one."""

    seed: int
    trace: Trace
    leaderships: dict[str | None, int]
    longest: float


def live_through(seed: int, often: tuple[str, ...] = ()) -> LeaseDay:
    """Simulate a day, on which some things happen often, by how their names begin. What was wrong
    is in its trace."""
    place = RAM if os.path.isdir(RAM) else None
    with (
        tempfile.TemporaryDirectory(prefix="sortie-sim-", dir=place) as directory,
        rendered_inline(),
        leases_by_simulated_clocks(),
    ):
        trace = Trace(hidden=directory)
        return run_seeded(seed, lambda: _day(seed, often, directory, trace))


async def _day(seed: int, often: tuple[str, ...], directory: str, trace: Trace) -> LeaseDay:
    async with trio.open_nursery() as nursery:
        world = LeaseWorld(nursery, seed, directory, trace)
        schedule = LeaseSchedule(seed, world, often)
        world.begin()
        for _ in range(STEPS):
            await trio.sleep(schedule.draw.expovariate(1 / 15))
            if trace.wrongs:
                break
            schedule.befall()
        if not trace.wrongs:
            await _evening(world, schedule)
        world.judge.judge_leaderships()
        await world.end()
        nursery.cancel_scope.cancel()
    for workflow in world.workflows:
        workflow.rows.disk.close()
    counts: dict[str | None, int] = {}
    for leadership in world.server.leaderships:
        counts[leadership.ended_by] = counts.get(leadership.ended_by, 0) + 1
    return LeaseDay(seed, trace, counts, world.judge.longest)


async def _evening(world: LeaseWorld, schedule: LeaseSchedule) -> None:
    """Mend everything: each workflow is led by the preferred daemon, and all issues are done."""
    world.trace.note("befalls", "all is mended")
    schedule.mend()
    await trio.sleep(70.0)  # what was begun before ends
    names = [name for workflow in world.workflows for name in workflow.names]
    for name in names:
        world.move_issue(name, "Todo")
        schedule.retry(name)
    with trio.move_on_after(IDLE_WITHIN):
        while not (_all_handed_off(world) or world.trace.wrongs):
            await trio.sleep(10.0)
    await trio.sleep(30.0)
    if not world.trace.wrongs:
        _judge_evening(world)


def _all_handed_off(world: LeaseWorld) -> bool:
    return all(state == "Review" for w in world.workflows for state in w.truth.states().values())


def _judge_evening(world: LeaseWorld) -> None:
    trace = world.trace
    for workflow in world.workflows:
        if astray := {n: s for n, s in workflow.truth.states().items() if s != "Review"}:
            trace.wrong(f"not handed off in the evening: {astray}")
        disk = workflow.rows.disk
        left = [*disk.under_way, *disk.retries, *disk.holds, *disk.comments]
        if left:
            trace.wrong(f"left in the evening in {workflow.name}: {left}")
        keys = workflow.truth.keys
        if twice := {key for key in keys if key is not None and keys.count(key) > 1}:
            trace.wrong(f"comments were made twice: {twice}")
        _judge_leader(world, workflow.name)


def _judge_leader(world: LeaseWorld, workflow: str) -> None:
    candidates = {daemon.id: daemon.weight for daemon in world.daemons}
    wanted = preferred(candidates, workflow)
    leaders = [daemon.id for daemon in world.daemons if workflow in daemon.lives]
    if leaders != [wanted] or world.server.leases[workflow].daemon != wanted:
        world.trace.wrong(f"{workflow} is led by {leaders}, and should be by {wanted}")
