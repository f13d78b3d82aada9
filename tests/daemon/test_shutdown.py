"""How the daemon ends: signals, deadlines, idleness and exit codes."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from sortie.daemon import shutdown as module
from sortie.daemon.shutdown import Shutdown
from sortie.daemon.stop_deadline import (
    CLOSE_ALL,
    CUT,
    INTERPRETER,
    LAST_SWEEP,
    POLITE,
    TOTAL,
    StopDeadline,
)
from sortie.model import Blocker, RunStatus, StoreError, TrackerErrorKind, TransportError
from sortie.orchestrator import Orchestrator
from sortie.orchestrator.context import Readiness
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from tests.agents.fake import Completes, Silent
from tests.orchestrator.world import HANDOFF, World
from tests.transports.fake import NEVER, Does
from tests.worker.rig import issue


class Left(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the codes with which the process would have been left at once."""
    codes: list[int] = []

    def leave(code: int) -> None:
        codes.append(code)
        raise Left

    monkeypatch.setattr(os, "_exit", leave)
    return codes


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Put back the handlers of signals, which a daemon keeps to the end of its process."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


class Day:
    """An orchestrator, its way to leave, and whether a reload was asked for."""

    def __init__(self, orchestrator: Orchestrator, shutdown: Shutdown) -> None:
        self.orchestrator = orchestrator
        self.shutdown = shutdown
        self.reloads = 0

    def reload(self) -> None:
        self.reloads += 1


@asynccontextmanager
async def day(
    world: World, *, when_idle: bool = False, deadline: StopDeadline | None = None
) -> AsyncIterator[Day]:
    """Live as the daemon does: signals are handled until the orchestrator is drained."""
    orchestrator = await world.born()
    shutdown = Shutdown(orchestrator, world.transport, world.publish, deadline)
    today = Day(orchestrator, shutdown)
    world.sinks.append(shutdown)
    async with trio.open_nursery() as services:
        await services.start(shutdown.handle_signals, today.reload)
        if when_idle:
            services.start_soon(shutdown.stop_when_idle, orchestrator)
        services.start_soon(_live, orchestrator, services)
        yield today


async def _live(orchestrator: Orchestrator, services: trio.Nursery) -> None:
    await orchestrator.run()
    services.cancel_scope.cancel()


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains(clock: MockClock, exits: list[int], number: signal.Signals) -> None:
    """Agents are ended politely, after_run runs, the runs are interrupted, the exit is clean."""
    world = World(issue(), hooks={"after_run": Does(seconds=5)})
    world.agent.scripts["A"] = [Silent(clings=3)]

    async with day(world) as today:
        await world.until(facts.AgentLaunched)
        send(number)

    assert (today.shutdown.exit_code, today.shutdown.reason, exits) == (0, number.name, [])
    assert world.of(facts.DaemonStopping) == [facts.DaemonStopping(running=1)]
    assert [row.status for row in await world.history()] == [RunStatus.INTERRUPTED]
    assert [ran.exit.status for ran in world.transport.ran] == [0]
    assert trio.current_time() == 8.0
    world.assert_quiet()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_after_the_last_run_cuts_short(
    clock: MockClock, exits: list[int], number: signal.Signals
) -> None:
    """Until the process is gone a second signal is one, and does not end it by its default."""
    world = World()

    async with day(world):
        send(signal.SIGTERM)
    with pytest.raises(Left):
        send(number)

    assert exits == [130]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_an_idle_daemon_that_ends_changes_nothing(
    clock: MockClock, exits: list[int], number: signal.Signals
) -> None:
    """It is the first: the exit is clean while services close and after it; the next one cuts."""
    world = World()

    async with day(world, when_idle=True) as today:
        await world.until(facts.DaemonStopping)
        send(number)
    after_first = list(exits)
    with pytest.raises(Left):
        send(number)

    assert (today.shutdown.exit_code, today.shutdown.reason) == (0, "idle")
    assert (after_first, exits) == ([], [130])


async def test_an_idle_daemon_is_signalled_when_all_is_closed(
    clock: MockClock, exits: list[int]
) -> None:
    """Neither its status nor the rest of its way changes by the first signal."""
    async with day(World(), when_idle=True) as today:
        pass
    send(signal.SIGTERM)
    after_first = list(exits)
    with pytest.raises(Left):
        send(signal.SIGTERM)

    assert (today.shutdown.exit_code, after_first, exits) == (0, [], [130])


async def test_hooks_are_cut_when_politeness_ends(clock: MockClock, exits: list[int]) -> None:
    """A hook that would take for ever is ended after 22 s, and the exit is clean still."""
    world = World(issue(), hooks={"after_run": NEVER})
    world.agent.scripts["A"] = [Silent()]

    async with day(world) as today:
        await world.until(facts.AgentLaunched)
        send(signal.SIGTERM)

    assert (today.shutdown.exit_code, exits, world.transport.hurried) == (0, [], True)
    assert trio.current_time() == POLITE
    assert [row.status for row in await world.history()] == [RunStatus.INTERRUPTED]
    world.assert_quiet()


async def test_what_does_not_end_is_left(clock: MockClock, exits: list[int]) -> None:
    """An agent that cannot be ended is swept for, and the process leaves within 30 s."""
    world = World(issue())
    world.agent.scripts["A"] = [Silent(clings=1000)]
    left_at = list[float]()

    with pytest.raises(ExceptionGroup):
        async with day(world):
            await world.until(facts.AgentLaunched)
            send(signal.SIGTERM)
            await world.until(facts.DaemonStopped)
            left_at.append(trio.current_time())

    assert exits == [1]
    assert left_at == [POLITE + CUT]
    assert world.transport.swept == [frozenset({world.of(facts.RunStarted)[0].run_id})]
    (stopped,) = world.of(facts.DaemonStopped)
    assert stopped.reason == "out of time with 1 runs under way"


async def test_a_second_signal_cuts(clock: MockClock, exits: list[int]) -> None:
    """Hooks are cut and grace is over at once; the exit says that it was cut short."""
    world = World(issue(), hooks={"after_run": NEVER})
    world.agent.scripts["A"] = [Silent()]

    async with day(world) as today:
        await world.until(facts.AgentLaunched)
        send(signal.SIGTERM)
        await trio.sleep(2)
        send(signal.SIGINT)

    assert (today.shutdown.exit_code, exits, world.transport.hurried) == (130, [], True)
    assert trio.current_time() == 2.0
    world.assert_quiet()


async def test_a_second_signal_does_not_wait(clock: MockClock, exits: list[int]) -> None:
    """What is not over a second later is swept for and left."""
    world = World(issue())
    world.agent.scripts["A"] = [Silent(clings=1000)]
    world.transport.pauses["sweep"] = 1000.0
    left_at = list[float]()

    with pytest.raises(ExceptionGroup):
        async with day(world):
            await world.until(facts.AgentLaunched)
            send(signal.SIGTERM)
            await trio.sleep(2)
            send(signal.SIGTERM)
            await world.until(facts.DaemonStopped)
            left_at.append(trio.current_time())

    assert exits == [130]
    assert left_at == [2 + 2 * module.CUT_SECONDS]


async def test_a_last_sweep_that_fails_is_the_last_thing(
    clock: MockClock, exits: list[int]
) -> None:
    """The process leaves all the same; the next start sees to what stays."""
    world = World(issue())
    world.agent.scripts["A"] = [Silent(clings=1000)]
    world.transport.faults["sweep"] = TransportError("they go on starting others")

    with pytest.raises(ExceptionGroup):
        async with day(world):
            await world.until(facts.AgentLaunched)
            send(signal.SIGTERM)
            await trio.sleep_forever()

    assert exits == [1]


async def test_a_hangup_reloads(clock: MockClock, exits: list[int]) -> None:
    """SIGHUP asks for a reload and stops nothing."""
    world = World()

    async with day(world) as today:
        await world.until(facts.PollCompleted)
        send(signal.SIGHUP)
        send(signal.SIGHUP)
        await trio.sleep(100)
        stopping = len(world.of(facts.DaemonStopping))
        send(signal.SIGTERM)

    assert (today.reloads >= 1, stopping) == (True, 0)


async def test_a_daemon_without_a_disk_leaves_with_its_reason(
    clock: MockClock, exits: list[int]
) -> None:
    """A stop while records cannot be written ends agents and raises the store's error."""
    world = World(issue())
    world.agent.scripts["A"] = [Silent(clings=1)]

    with pytest.raises(ExceptionGroup) as caught:
        async with day(world):
            await world.until(facts.AgentLaunched)
            await trio.sleep(1)
            world.store.failing = StoreError("disk full")
            send(signal.SIGTERM)

    assert caught.group_contains(StoreError, match="disk full")
    world.assert_quiet()


# Idleness


async def test_an_idle_daemon_leaves(clock: MockClock, exits: list[int]) -> None:
    """When all is worked on and handed off the exit is 0."""
    world = World(issue(), tracker={"handoff_state": "Review"})

    async with day(world, when_idle=True) as today:
        pass

    assert (today.shutdown.exit_code, today.shutdown.reason) == (0, "idle")
    world.tracker.assert_all_in("Review")


def blocked_agent(world: World) -> None:
    world.tracker.put(issue())
    world.agent.scripts["A"] = [Completes(status="blocked")]


def blocked_issue(world: World) -> None:
    world.tracker.put(issue(blocked_by=(Blocker(identifier="ELSEWHERE"),)))


def paused(world: World) -> None:
    world.tracker.put(issue())


@pytest.mark.parametrize("left", [blocked_agent, blocked_issue, paused])
async def test_an_idle_daemon_tells_what_is_left(
    clock: MockClock, exits: list[int], left: Callable[[World], None]
) -> None:
    """A held or blocked issue, or a pause, makes it 3."""
    world = World()
    left(world)

    async with day(world, when_idle=True) as today:
        if left is paused:
            today.orchestrator.tell(ev.PauseAsked(True))

    assert today.shutdown.exit_code == 3


async def test_a_tracker_that_is_down_is_no_idleness(clock: MockClock, exits: list[int]) -> None:
    """The daemon waits for the tracker however long it takes."""
    world = World()
    world.tracker.down = TrackerErrorKind.UNAVAILABLE

    async with day(world, when_idle=True) as today:
        await trio.sleep(36_000)
        world.tracker.down = None

    assert today.shutdown.exit_code == 0
    assert trio.current_time() >= 36_000


async def test_polls_that_cannot_be_made_end_the_wait(clock: MockClock, exits: list[int]) -> None:
    """Where no poll is possible no idleness can be seen: what runs may end, and it is a failure."""
    world = World(issue())
    world.agent.scripts["A"] = [Completes(after=100, does=lambda: world.tracker.lose("a"))]

    async with day(world, when_idle=True) as today:
        await world.until(facts.AgentLaunched)
        world.readiness = Readiness(fault="the root is read-only")

    assert today.shutdown.exit_code == 1
    assert today.shutdown.reason == "polls are not possible"
    assert [row.status for row in await world.history()] == [RunStatus.SUCCEEDED]


async def test_a_signal_wins_over_idleness(clock: MockClock, exits: list[int]) -> None:
    """A daemon that waits for idleness and is told to go drains as any other."""
    world = World(issue())
    world.agent.scripts["A"] = [Silent()]

    async with day(world, when_idle=True) as today:
        await world.until(facts.AgentLaunched)
        send(signal.SIGTERM)

    assert (today.shutdown.exit_code, today.shutdown.reason) == (0, "SIGTERM")


@asynccontextmanager
async def closing_hangs(left_at: list[float]) -> AsyncIterator[None]:
    """Stand for a client, a connection or a database that does not close, until the process is
    left."""
    try:
        yield
    finally:
        with trio.CancelScope(shield=True):
            while not left_at:
                await trio.sleep(0.1)


def test_the_shares_of_the_end_are_thirty_seconds() -> None:
    """A supervisor often kills at 30."""
    assert POLITE + CUT + LAST_SWEEP + CLOSE_ALL + INTERPRETER == TOTAL == 30.0


@pytest.mark.parametrize("clings", [3.0, 1000.0], ids=["agent ends", "agent stays"])
async def test_all_that_hangs_at_once_takes_no_more_than_one_deadline(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch, clings: float
) -> None:
    """Hook, agent, tracker, store and what is to be closed: each limit is a share of the 30 s."""
    world = World(issue(), issue("b"), hooks={"after_run": NEVER}, tracker=HANDOFF)
    world.agent.scripts["A"] = [Silent(clings=clings)]
    world.agent.scripts["B"] = [Silent(clings=clings)]
    world.transport.pauses["sweep"] = 1000.0
    deadline, left_at, began = StopDeadline(), list[float](), 0.0

    def leave(_code: int) -> None:
        left_at.append(trio.current_time())
        raise Left

    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises(ExceptionGroup):
        async with (
            deadline.enforced(lambda: os._exit(1)),
            closing_hangs(left_at),
            day(world, deadline=deadline),
        ):
            await world.until(facts.AgentLaunched, 2)
            world.tracker.delay = 1000.0
            world.store.failing = StoreError("disk full")
            began = trio.current_time()
            send(signal.SIGTERM)

    assert POLITE < left_at[0] - began <= TOTAL - INTERPRETER


async def test_what_ends_in_good_order_has_no_deadline_any_more(clock: MockClock) -> None:
    """Nothing is left of it once all is closed."""
    deadline = StopDeadline()
    left: list[float] = []

    async with deadline.enforced(lambda: left.append(trio.current_time())):
        await trio.sleep(100)
        deadline.begin()
        await trio.sleep(1)
        deadline.begin()
        remaining = deadline.left()

    await trio.sleep(1000)
    assert (left, remaining) == ([], 29.0)
