"""One simulated day: lives that end well or badly, then a good one, then the verdict."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from unittest import mock

import trio

from sortie.model import Issue, IssueId
from sortie.model.own_comments import ASKS
from sortie.scheduler import events as ev
from sortie.workflow import composing
from sortie.workflow.prompts import Prompt, PromptContext
from tests.sim.system.determinism import run_seeded
from tests.sim.system.plug import Plug
from tests.sim.system.schedule import Schedule
from tests.sim.system.store import CrashPoint
from tests.sim.system.trace import Trace
from tests.sim.system.world import EPOCH, Life, SimWorld, sim_settings

NAMES = ("a", "b", "c", "d", "e", "f/1 ü")
RAM = "/dev/shm"
IDLE_WITHIN = 6 * 3600.0
"""Seconds of virtual time in which a healed world must come to rest."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a day is made of; a short one has few commits. Its text is ``plan_of``'s argument."""

    seed: int
    short: bool = False
    crash: CrashPoint | None = None

    @property
    def lives(self) -> int:
        """How many lives are lived before the last."""
        return 1 if self.short else 4

    @property
    def steps(self) -> int:
        """How many things befall a life at most."""
        return 10 if self.short else 30

    def __str__(self) -> str:
        parts = (str(self.seed), "short" if self.short else "", str(self.crash or ""))
        return ":".join(part for part in parts if part)


def plan_of(text: str) -> Plan:
    """Read a plan: SEED[:short][:before:K|:after:K]. Raises ValueError."""
    seed, *words = text.split(":")
    short = words[:1] == ["short"]
    match words[int(short) :]:
        case []:
            return Plan(int(seed), short)
        case ["before" | "after" as moment, number]:
            return Plan(int(seed), short, CrashPoint(moment, int(number)))
        case _:
            raise ValueError(f"{text!r} is no day; say SEED[:short][:before:K|:after:K]")


@dataclass(frozen=True, slots=True)
class Day:
    """A day that is over, with the number of commits that were made."""

    plan: Plan
    trace: Trace
    commits: int


def live_through(plan: Plan) -> Day:
    """Simulate a day. What was wrong is in its trace."""
    place = RAM if os.path.isdir(RAM) else None
    with (
        tempfile.TemporaryDirectory(prefix="sortie-sim-", dir=place) as directory,
        rendered_inline(),
    ):
        trace = Trace(hidden=directory)
        return run_seeded(plan.seed, lambda: _day(plan, f"{directory}/db", trace))


def rendered_inline() -> AbstractContextManager[object]:
    """Have prompts rendered without a thread while the block lasts."""
    return mock.patch.object(composing, "render", _render)


def sim_issues(names: Sequence[str]) -> list[Issue]:
    """Return the issues with these names."""
    return [
        Issue(
            id=IssueId(name),
            identifier=name.upper(),
            title=f"Mend {name}",
            state="Todo",
            created_at=datetime.fromtimestamp(EPOCH + 600.0 * number, UTC),
        )
        for number, name in enumerate(names, -2)
    ]


async def _render(prompt: Prompt, context: PromptContext, **_: object) -> str:
    """Stand in for the thread that renders, which would let virtual time run away."""
    await trio.lowlevel.checkpoint()
    return prompt.source


async def _day(plan: Plan, path: str, trace: Trace) -> Day:
    async with trio.open_nursery() as machinery:
        names = NAMES[-3:] if plan.short else NAMES
        world = SimWorld(machinery, plan.seed, path, trace, sim_issues(names))
        world.drive.crash = plan.crash
        schedule = Schedule(plan.seed, world, names)
        for _ in range(plan.lives):
            await _bad_life(world, schedule, plan.steps)
        await _good_life(world, schedule)
        machinery.cancel_scope.cancel()
    world.drive.disk.close()
    return Day(plan, trace, world.drive.commits)


async def _bad_life(world: SimWorld, schedule: Schedule, steps: int) -> None:
    """Live until drained, or killed at any time, the first moments included."""
    draw, plug = schedule.draw, Plug()
    killed_in = draw.choice([None, None, draw.uniform(0, 20), draw.expovariate(1 / 600)])

    async def going_on(life: Life) -> None:
        for _ in range(steps):
            if world.trace.wrongs:
                break
            schedule.befall(life)
            await trio.sleep(draw.expovariate(1 / 30))
            await _look(world, life)

    async with trio.open_nursery() as nursery:
        if killed_in is not None:
            nursery.start_soon(_kill_in, killed_in, plug, world)
        await world.live(plug, going_on)
        nursery.cancel_scope.cancel()
    if draw.random() < 0.5:
        world.drive.heal()
    if draw.random() < 0.3:
        await trio.sleep(draw.choice([1.0, 60.0, 4000.0]))


async def _kill_in(seconds: float, plug: Plug, world: SimWorld) -> None:
    await trio.sleep(seconds)
    world.trace.note("world", "kills the daemon")
    plug.pull()


async def _look(world: SimWorld, life: Life) -> None:
    """Compare memory and disk, once nothing is under way between them."""
    now = trio.current_time()
    await trio.testing.wait_all_tasks_blocked()
    out_of_order = life.plug.pulled or life.scheduler.crashed or life.orchestrator.store_error
    if world.drive.was_well(now) and not out_of_order:
        world.witnesses.compare(life.orchestrator.snapshot())


async def _good_life(world: SimWorld, schedule: Schedule) -> None:
    """Mend everything; all issues must be handed off, and then be put away."""
    while not world.trace.wrongs:
        plug, done = Plug(), trio.Event()

        async def going_on(life: Life, done: trio.Event = done) -> None:
            schedule.befall(life)  # so that what follows heals a life that is under way
            await trio.sleep(60.0)
            await _go_home(world, schedule, life)
            done.set()

        await world.live(plug, going_on)
        if done.is_set():
            _judge_evening(world)
            return
        world.drive.heal()  # it was killed at its crash point, or gave up


async def _go_home(world: SimWorld, schedule: Schedule, life: Life) -> None:
    tell, truth = life.orchestrator.tell, world.tracked.truth
    schedule.mend()
    world.manners.well = True
    schedule.apply(life.orchestrator, sim_settings(polling={"interval_ms": 60_000}))
    tell(ev.PauseAsked(False))
    for name in sorted(world.lost):
        truth.find_again(name)
    world.lost.clear()
    for name in schedule.names:
        truth.edit(name, blocked_by=())
    await trio.sleep(700.0)  # agents of before do what they do to their issues
    for name in schedule.names:
        world.move_issue(name, "Todo")
    tell(ev.RefreshRequested())
    await trio.sleep(100.0)
    for name in schedule.names:
        world.account.parked.pop(name, None)
        tell(ev.RetryAsked(name))
    await _rest(world, life, "all are handed off")
    _expect(world, "Review")
    for name in schedule.names:
        world.move_issue(name, "Done")
    await trio.sleep(3700.0)  # every known workspace is looked at once an hour
    await _rest(world, life, "all are put away")
    _expect(world, "Done")


async def _rest(world: SimWorld, life: Life, what: str) -> None:
    """Wait until there is nothing to do and to wait for; it must come to that."""
    before = life.orchestrator.snapshot().idle_polls
    with trio.move_on_after(IDLE_WITHIN):
        while True:
            await trio.sleep(150.0)
            if life.orchestrator.snapshot().idle_polls >= 2 or world.trace.wrongs:
                break
    picture = life.orchestrator.snapshot()
    if picture.claims:
        world.trace.wrong(f"not at rest when {what} ({before}): {picture.claims}")
    await _look(world, life)


def _expect(world: SimWorld, state: str) -> None:
    astray = {name: s for name, s in world.tracked.truth.states().items() if s != state}
    if astray:
        world.trace.wrong(f"not in {state}: {astray}")


def _judge_evening(world: SimWorld) -> None:
    disk = world.drive.disk
    left: dict[str, object] = {
        "runs under way": list(disk.under_way),
        "waits": list(disk.retries),
        "holds": list(disk.holds),
        "workspaces": list(disk.workspaces),
        "budgets": dict(disk.sessions),
        "processes": [str(p) for p in world.machine.alive if p.cookie],
    }
    truth = world.tracked.truth
    asked = Counter(
        comment.body
        for name in truth.states()
        for comment in truth.comments_on(name.casefold())
        if comment.body.startswith(ASKS)
    )
    left["questions that were asked twice"] = [body for body, n in asked.items() if n > 1]
    left["questions"] = list(disk.questions)
    for what, things in left.items():
        if things:
            world.trace.wrong(f"{what} are left in the evening: {things}")
