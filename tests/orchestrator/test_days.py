"""Bad days: the real loop and worker among random faults, people and restarts, seed by seed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from sortie.model import (
    AgentError,
    ErrorKind,
    HoldReason,
    IssueId,
    RunStatus,
    StopReason,
    StoreError,
    TrackerErrorKind,
    TransportError,
    Trigger,
    TurnOutcome,
)
from sortie.orchestrator import Orchestrator
from sortie.scheduler import Event, policy_of
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from tests.agents.fake import Chats, Completes, Fails, Raises, Silent, Step
from tests.orchestrator.world import HANDOFF, World
from tests.transports.fake import Does
from tests.worker.rig import issue

NAMES = tuple("abcdef")
SLOTS = 3
LIVES = 6
STEPS = 40


class Day:
    """A world, and what may befall it; ``draw`` decides what does."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.world = World(
            *map(issue, NAMES),
            hooks={name: Does(seconds=2) for name in ("after_create", "before_run", "after_run")},
            tracker={
                **HANDOFF,
                "in_progress_state": "Doing",
                "comments": {"on_dispatch": True, "on_completion": True, "on_failure": True},
            },
            agent={
                "max_turns": 3,
                "max_concurrent_agents": SLOTS,
                "turn_timeout_ms": 600_000,
                "stall_timeout_ms": 120_000,
            },
        )
        for name in NAMES:
            self.world.agent.scripts[name.upper()] = [self._step(name) for _ in range(30)]
        self.lost: set[str] = set()

    def _step(self, name: str) -> Step:
        draw = self.draw
        match draw.randrange(8):
            case 0:
                return Fails(after=draw.uniform(0, 60))
            case 1:
                return Fails(kind=ErrorKind.TURN_CANCELLED, outcome=TurnOutcome.CANCELLED)
            case 2:
                return Raises(error=LookupError("a bug"), after=draw.uniform(0, 60))
            case 3:
                return Silent(clings=draw.uniform(0, 5))
            case 4:
                return Chats(every=draw.uniform(1, 110), times=draw.randrange(1, 20), credits=0.1)
            case 5:
                status = draw.choice(["blocked", "needs-human-review", "what?"])
                return Completes(after=draw.uniform(0, 60), status=status)
            case 6:
                state = draw.choice(["Todo", "Doing", "Done"])
                return Completes(does=lambda: self.move(name, state), shielded=True)
            case _:
                return Completes(after=draw.uniform(0, 300), credits=0.1)

    def move(self, name: str, state: str) -> None:
        """Have someone move an issue, if it is there."""
        if name not in self.lost:
            self.world.tracker.edit(name, state=state)

    async def live(self, orchestrator: Orchestrator) -> None:
        """Let things happen."""
        for _ in range(STEPS):
            self.draw.choice(self.happenings(orchestrator))()
            await trio.sleep(self.draw.expovariate(1 / 40))

    def happenings(self, orchestrator: Orchestrator) -> list[Callable[[], object]]:
        """Return what may happen next."""
        world, draw = self.world, self.draw
        name = draw.choice(NAMES)
        tell = orchestrator.tell
        well: list[Callable[[], object]] = [
            lambda: setattr(world.tracker, "down", None),
            lambda: setattr(world.tracker, "transitions_fail", None),
            lambda: setattr(world.store, "failing", None),
            world.transport.faults.clear,
            lambda: tell(ev.PauseAsked(False)),
            lambda: self.revive(name, tell),
            lambda: self.revive(draw.choice(NAMES), tell),
        ]
        ill: list[Callable[[], object]] = [
            lambda: setattr(world.tracker, "down", TrackerErrorKind.UNAVAILABLE),
            lambda: setattr(world.tracker, "delay", draw.choice([0.0, 0.0, 5.0, 100.0])),
            lambda: setattr(world.tracker, "transitions_fail", TrackerErrorKind.UNAVAILABLE),
            lambda: setattr(world.store, "failing", StoreError("disk full")),
            lambda: world.transport.faults.update(remove_directory=TransportError("busy")),
            lambda: world.transport.faults.update(make_directory=TransportError("no space")),
            lambda: world.transport.pauses.update(contained=draw.uniform(0, 5)),
            lambda: world.agent.refusals[name.upper()].append(
                AgentError(draw.choice([ErrorKind.AGENT_NOT_FOUND, ErrorKind.RESPONSE_ERROR]), "no")
            ),
            lambda: self.move(name, "Doing"),
            lambda: self.move(name, "Done"),
            lambda: self.move(name, "Backlog"),
            lambda: self.lose(name),
            lambda: tell(ev.StopAsked(IssueId(name))),
            lambda: tell(ev.PauseAsked(True)),
            lambda: tell(ev.RefreshRequested()),
            lambda: orchestrator.apply(world.settings, policy_of(world.settings)),
        ]
        return well * 3 + ill

    def revive(self, name: str, tell: Callable[[Event], None]) -> None:
        """Have someone want an issue worked on."""
        self.find(name)
        self.move(name, "Todo")
        tell(ev.RetryAsked(IssueId(name)))

    def lose(self, name: str) -> None:
        """Have an issue vanish."""
        if name not in self.lost:
            self.lost.add(name)
            self.world.tracker.lose(name)

    def find(self, name: str) -> None:
        """Have an issue come back."""
        if name in self.lost:
            self.lost.remove(name)
            self.world.tracker.find_again(name)

    def heal(self) -> None:
        """Let all be well again, and every agent do its work."""
        world = self.world
        for name in NAMES:
            self.find(name)
            world.tracker.edit(name, state="Todo")
            world.agent.scripts[name.upper()] = [Completes()]
        world.tracker.down = world.tracker.transitions_fail = world.store.failing = None
        world.tracker.delay = 0.0
        world.transport.faults.clear()
        world.agent.refusals.clear()


async def bad_day(seed: int) -> Day:
    """Live through some lives, each drained or killed, and then through a good one."""
    day = Day(seed)
    world = day.world
    for _ in range(LIVES):
        killed = day.draw.random() < 0.5
        async with world.life_cut_short() if killed else world.life() as orchestrator:
            await day.live(orchestrator)
            if not killed:
                world.store.failing = None
        world.store.failing = None
    day.heal()
    async with world.life() as orchestrator:
        orchestrator.tell(ev.PauseAsked(False))
        for name in NAMES:
            orchestrator.tell(ev.RetryAsked(IssueId(name)))
        await orchestrator.idle.wait()
    return day


async def assert_ended_well(day: Day, seed: int) -> None:
    """Fail where two runs of an issue met, a limit was broken, or anything was lost."""
    world = day.world
    rows = await world.history()
    assert world.agent.wrongs == [], f"seed {seed}"
    assert world.agent.most_at_once <= SLOTS, f"seed {seed}"
    started = {fact.run_id for fact in world.of(facts.RunStarted)}
    assert sorted(row.run_id for row in rows) == sorted(started), f"seed {seed}"
    assert [row for row in rows if row.status is RunStatus.RUNNING] == [], f"seed {seed}"
    world.tracker.assert_all_in("Review")
    world.assert_quiet()


async def test_bad_days_end_well(clock: MockClock) -> None:
    """Whatever befell, all issues end well; and enough befell for that to mean something."""
    seen: set[object] = set()

    for seed in range(5):
        day = await bad_day(seed)
        await assert_ended_well(day, seed)
        seen |= {row.status for row in await day.world.history()}
        seen |= {type(fact) for fact in day.world.facts}
        seen |= {fact.reason for fact in day.world.of(facts.IssueHeld)}
        seen |= {fact.reason for fact in day.world.of(facts.RunStopping)}
        seen |= {fact.trigger for fact in day.world.of(facts.RetryScheduled)}

    assert set(RunStatus) - seen == {RunStatus.RUNNING}
    assert set(StopReason) - seen == set()
    assert set(Trigger) - seen == set()
    assert {HoldReason.OPERATOR, HoldReason.AGENT_BLOCKED, HoldReason.AGENT_NOT_FOUND} <= seen
    assert {
        facts.AdapterCrashed,
        facts.DispatchDropped,
        facts.HoldEnded,
        facts.StoreFailed,
        facts.StoreRecovered,
        facts.WaitEnded,
        facts.WorkspaceRemoved,
    } <= seen


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 160))
async def test_more_bad_days_end_well(clock: MockClock, seed: int) -> None:
    """The same for many seeds."""
    await assert_ended_well(await bad_day(seed), seed)
