"""Four pure paths that run all the time cost no more than they did, counted in instructions.

Each has a number of steps, as ``instructions.steps`` counts them, that was measured when the path
last got cheaper. It may cost a third more: versions of Python differ by about a fifth, and what
is done on purpose adds a little. A path that costs twice as much fails. Whoever makes one cheaper
writes the new number here; whoever makes one dearer on purpose says why in the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle

import pytest
import trio
from trio.testing import MockClock

from sortie.agents import OnEvents
from sortie.agents.kiro.reader import KiroReader
from sortie.agents.output import AgentOutput
from sortie.model import Blocker, TurnOutcome, TurnResult
from sortie.model.turns import notification
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.web.state import to_json
from tests.agents.fake import FakeSession, Silent
from tests.benchmarks.instructions import steps
from tests.orchestrator.daemon_view import view_of
from tests.orchestrator.world import World
from tests.scheduler.driver import POLICY, Driver
from tests.scheduler.driver import issue as candidate
from tests.worker.rig import Rig, clock_that_waits_for_threads
from tests.worker.rig import issue as run_issue

SLACK = 1.33

TICK, QUIET_TICK = 1163.0, 30.0
"""Steps of a poll's answer with the tick after it, where one issue changed, and where none did."""

CHUNK = 483.0
"""Steps of 64 KiB of output up to events."""

LINE_HEARD = 9.8
"""Steps of a line that an agent says, from its adapter's event to the fact of it."""

SNAPSHOT = 731.0
"""Steps of a state as JSON."""

CHUNK_SIZE = 64 * 1024
LINE = b"It reads a file of the project and says what it has found in there, and then goes on\n"


def tick(claims: int, candidates: int, *, changed: bool) -> Callable[[], None]:
    """Return what a scheduler does each poll: the answer with claims and others, and a tick.

    Where nothing has changed, the answer holds the very issues of the one before; otherwise new
    ones that are equal to them, as a tracker over the network has them, and one that is not.
    """
    driver = Driver(replace(POLICY, max_concurrent_agents=claims))
    running = [candidate(f"r{number}") for number in range(claims)]
    driver.start(*running)
    blocked = Blocker(identifier="ELSEWHERE-1")
    others = [candidate(f"b{n}", blocked_by=(blocked,)) for n in range(candidates // 2)]
    others += [candidate(f"q{n}") for n in range(candidates - candidates // 2)]
    issues = (*running, *others)
    answers = [issues]
    for number in range(2 if changed else 0):
        edited = replace(others[number], title=f"Edited {number}")
        answers.append((*map(replace, issues[:-1]), edited))
    events = cycle(ev.CandidatesFetched(issues=answer) for answer in answers)
    scheduler = driver.scheduler
    scheduler.handle(next(events), driver.now)
    assert len(scheduler.snapshot(0.0).worked) == claims

    def act() -> None:
        driver.now += 1.0
        scheduler.handle(next(events), driver.now)
        scheduler.handle(ev.TimePassed(), driver.now)
        scheduler.wakeup_at()

    return act


def chunk(size: int) -> Callable[[], None]:
    """Return the reading of one chunk of lines, up to events."""
    output = AgentOutput(KiroReader(), ["a key that is not in there"])
    text = LINE * (size // len(LINE))
    assert output.take(1, text)

    def act() -> None:
        output.take(1, text)

    return act


async def line_heard(monkeypatch: pytest.MonkeyPatch) -> float:
    """Return the steps of one line of an agent in a turn with a stall deadline."""
    rig, counted = Rig(agent={"stall_timeout_ms": 60_000}), 0.0

    async def play(_session: FakeSession, _prompt: str, heard: OnEvents) -> TurnResult:
        nonlocal counted
        counted = steps(lambda: heard([notification(["It reads a file of the project"])]))
        return TurnResult(outcome=TurnOutcome.COMPLETED)

    monkeypatch.setattr(rig.agent, "play", play)
    await rig.work()
    assert rig.of(facts.AgentSpoke)[-1].lines == 1
    return counted


async def snapshot(runs: int) -> float:
    """Return the steps of showing the state of a daemon with so many runs, as JSON."""
    issues = [run_issue(f"i{number}") for number in range(runs)]
    world = World(*issues, agent={"max_concurrent_agents": runs, "stall_timeout_ms": 0})
    for one in issues:
        world.agent.scripts[one.identifier] = [Silent()]
    async with world.life_cut_short() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.TurnBegan, runs)
        await trio.testing.wait_all_tasks_blocked()
        return steps(lambda: to_json(view.state()))


def test_a_tick_costs_no_more_than_it_did() -> None:
    """A poll's answer and a tick, with 20 claims and 200 candidates, keep within their number."""
    assert steps(tick(20, 200, changed=True)) < TICK * SLACK


def test_a_tick_grows_with_what_there_is() -> None:
    """Twice the claims and candidates cost about twice as much, not four times."""
    few, many = tick(20, 200, changed=True), tick(40, 400, changed=True)

    assert steps(many) < 2.4 * steps(few)


def test_a_tick_where_nothing_changed_does_not_grow() -> None:
    """What the last poll has found already is not looked at again, however much it is."""
    few, many = tick(20, 200, changed=False), tick(40, 400, changed=False)

    assert steps(few) < QUIET_TICK * SLACK
    assert steps(many) < 1.2 * steps(few)


def test_a_chunk_costs_no_more_than_it_did() -> None:
    """A chunk of output of the size in which pipes are read keeps within its number."""
    assert steps(chunk(CHUNK_SIZE)) < CHUNK * SLACK


def test_a_chunk_grows_with_its_lines() -> None:
    """Twice the output costs at most about twice as much."""
    assert steps(chunk(2 * CHUNK_SIZE)) < 2.2 * steps(chunk(CHUNK_SIZE))


async def test_a_line_that_is_heard_costs_no_more_than_it_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sign of life is noted, and moves no deadline of trio's."""
    assert await line_heard(monkeypatch) < LINE_HEARD * SLACK


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[MockClock]:
    """Give a clock that jumps to the next deadline when nothing else is to be done."""
    with clock_that_waits_for_threads(monkeypatch) as clock:
        yield clock


async def test_a_snapshot_costs_no_more_than_it_did(clock: MockClock) -> None:
    """The state with 20 runs, from the scheduler to JSON, keeps within its number."""
    assert await snapshot(20) < SNAPSHOT * SLACK


async def test_a_snapshot_grows_with_the_runs(clock: MockClock) -> None:
    """Twice the runs cost at most about twice as much."""
    assert await snapshot(40) < 2.2 * await snapshot(20)


def test_counts_are_exact() -> None:
    """The same work takes the same number of instructions, and twice of it twice as many."""

    def once() -> int:
        return sum(number % 3 for number in range(50))

    def twice() -> None:
        once()
        once()

    assert steps(once) == steps(once)
    assert steps(twice) == pytest.approx(2 * steps(once), rel=0.05)
