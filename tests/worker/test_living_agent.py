"""An agent whose process and tasks live from the entering of its session to the leaving."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sortie.agents import OnEvents, SessionParams
from sortie.model import AgentError, ErrorKind, Failed, RunReport, Stopped, TurnOutcome, TurnResult
from sortie.model.turns import Launched
from sortie.telemetry import facts
from sortie.transports import Command, Process
from sortie.worker.session import SESSION_END_SLACK, SESSION_START_SLACK
from tests.transports.fake import NEVER, Does
from tests.worker.rig import HOOKS, USED, Rig

DONE = TurnResult(outcome=TurnOutcome.COMPLETED)


class LivingSession:
    """Its turns are answered by a task of the session's, which also answers a cancellation."""

    id = ""

    def __init__(self, process: Process, seconds: float) -> None:
        self._question, self._answer = trio.Event(), trio.Event()
        self._gone = False
        self._process = process
        self._seconds = seconds
        self.polite_ends = 0

    async def serve(self) -> None:
        """Answer what is asked, a second later; where this ends, nobody waits any more."""
        try:
            while True:
                await self._question.wait()
                await trio.sleep(1)
                self._question = trio.Event()
                self._answer.set()
        finally:
            self._gone = True
            self._answer.set()

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        """Take some seconds; where that is cancelled, agree on the end with the task."""
        on_events([Launched(process=self._process.identity)])
        try:
            await trio.sleep(self._seconds)
        except trio.Cancelled:
            with trio.move_on_after(10, shield=True):
                self.polite_ends += await self._ask()
            raise
        await self._ask()
        return DONE

    async def _ask(self) -> bool:
        if not self._gone:
            self._answer = trio.Event()
            self._question.set()
            await self._answer.wait()
        return not self._gone


class LivingAgent:
    """Owns a nursery and a process while a session is open; takes its time with both ends."""

    def __init__(self, turn: float = 4.0, entering: float = 1.0, leaving: float = 1.0) -> None:
        self.turn, self.entering, self.leaving = turn, entering, leaving
        self.sessions: list[LivingSession] = []
        self.crash: Callable[[], object] | None = None
        self.refusal: Exception | None = None
        self.wrongs: list[str] = []

    @asynccontextmanager
    async def session(self, params: SessionParams) -> AsyncIterator[LivingSession]:
        command = Command(argv=("sh", "-c", "agent"), cwd=params.workspace, env=params.env)
        async with params.transport.process(command) as process, trio.open_nursery() as nursery:
            session = LivingSession(process, self.turn)
            nursery.start_soon(session.serve)
            await trio.sleep(self.entering)
            if self.refusal is not None:
                raise self.refusal
            if self.crash is not None:
                nursery.start_soon(self._crash, self.crash)
            self.sessions.append(session)
            try:
                yield session
            except BaseException as exc:
                self.wrongs += [] if isinstance(exc, trio.Cancelled) else [repr(exc)]
                raise
            await trio.sleep(self.leaving)
            nursery.cancel_scope.cancel()

    async def _crash(self, crash: Callable[[], object]) -> None:
        await trio.sleep(2)
        crash()

    def assert_over(self) -> None:
        """Fail where an exception other than a cancellation went through a session's block."""
        assert self.wrongs == []


def living(living_agent: LivingAgent, /, **sections: Any) -> Rig:
    """Return a worker's surroundings with that agent."""
    rig = Rig(hooks=HOOKS, **sections)
    setattr(rig, "agent", living_agent)  # noqa: B010
    rig.transport.scripts["agent"] = NEVER
    return rig


async def test_one_process_serves_all_turns(clock: MockClock) -> None:
    """It lives over the turns, and is gone before ``after_run``."""
    agent = LivingAgent()
    rig = living(agent, agent={"max_turns": 3})

    report = await rig.work()

    assert report == RunReport(end=USED, turns=3, seconds=1 + 3 * 5 + 1)
    assert len(rig.transport.processes_of("agent")) == 1
    assert [entry for entry in rig.journal if entry.startswith("runs")][-2:] == [
        "runs agent",
        "runs after_run",
    ]
    rig.assert_nothing_open()


async def test_a_stop_reaches_the_turn_alone(clock: MockClock) -> None:
    """The session's own task lives on, so that the turn and the session end politely."""
    agent = LivingAgent(turn=100)
    rig = living(agent)

    report = await rig.work_stopped_at(10)

    assert report == RunReport(end=Stopped(), turns=1, seconds=10 + 1 + 1)
    assert [session.polite_ends for session in agent.sessions] == [1]
    assert rig.journal[-1] == "runs after_run"
    rig.assert_nothing_open()


async def test_a_turn_past_its_deadline_ends_politely_too(clock: MockClock) -> None:
    """Its outcome is the deadline's, and the session is left as always."""
    agent = LivingAgent(turn=100)
    rig = living(agent, agent={"turn_timeout_ms": 10_000})

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert (report.end.kind, report.seconds) == (ErrorKind.TURN_TIMEOUT, 1 + 10 + 1 + 1)
    assert [session.polite_ends for session in agent.sessions] == [1]
    rig.assert_nothing_open()


async def test_a_session_that_is_not_there_in_time_is_given_up(clock: MockClock) -> None:
    """What was opened so far is closed again, and the hook runs."""
    rig = living(LivingAgent(entering=10_000), agent={"read_timeout_ms": 5000})

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert (report.end.kind, report.seconds) == (
        ErrorKind.RESPONSE_TIMEOUT,
        5 + SESSION_START_SLACK,
    )
    assert [fact.timed_out for fact in rig.of(facts.SessionRefused)] == [True]
    assert rig.journal[-1] == "runs after_run"
    rig.assert_nothing_open()


@pytest.mark.parametrize("stopped", [False, True])
async def test_a_session_that_is_not_left_in_time_is_given_up(
    clock: MockClock, stopped: bool
) -> None:
    """The end of the run is what it was before, and the hook runs."""
    rig = living(LivingAgent(leaving=10_000), agent={"stop_grace_ms": 2000})

    report = await (rig.work_stopped_at(3) if stopped else rig.work())

    turn = 2 + 1 if stopped else 4 + 1
    assert report.end == (Stopped() if stopped else USED)
    assert report.seconds == 1 + turn + 2 + SESSION_END_SLACK
    assert rig.journal[-1] == "runs after_run"
    rig.assert_nothing_open()


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("after", [0.25 + step / 2 for step in range(20)])
async def test_an_end_at_any_moment_leaves_nothing_open(
    clock: MockClock, after: float, cut: bool
) -> None:
    """A stop gets its polite end; a cut ends all at once, whatever is under way."""
    agent = LivingAgent()
    rig = living(agent, agent={"max_turns": 2})
    rig.transport.scripts |= {name: Does(seconds=1) for name in HOOKS}

    async with trio.open_nursery() as nursery:
        if cut:
            nursery.start_soon(cut_after, rig, after)
        report = await (rig.work() if cut else rig.work_stopped_at(after))
        nursery.cancel_scope.cancel()

    assert isinstance(report.end, Stopped)
    assert report.seconds == after if cut else report.seconds < after + 5
    rig.assert_nothing_open()


async def cut_after(rig: Rig, seconds: float) -> None:
    """End the worker without mercy after some seconds, as a second signal does."""
    await trio.sleep(seconds)
    rig.scopes.cut()


async def test_a_task_that_crashes_ends_its_run_alone(clock: MockClock) -> None:
    """It is told with its traceback, and the session is closed."""
    agent = LivingAgent(turn=100)
    agent.crash = lambda: [][0]
    rig = living(agent)

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert report.end.kind is ErrorKind.INTERNAL_ERROR
    assert "IndexError" in report.end.message
    assert len(rig.of(facts.AdapterCrashed)) == 1
    assert rig.journal[-1] == "runs after_run"
    rig.assert_nothing_open()


async def test_an_error_that_a_nursery_wrapped_is_understood(clock: MockClock) -> None:
    """A refusal keeps its kind and words although it came through the session's nursery."""
    agent = LivingAgent()
    agent.refusal = AgentError(ErrorKind.RESPONSE_ERROR, "log in first")
    rig = living(agent)

    report = await rig.work()

    assert report.end == Failed(kind=ErrorKind.RESPONSE_ERROR, message="log in first")
    assert [fact.error for fact in rig.of(facts.SessionRefused)] == ["log in first"]
    rig.assert_nothing_open()


async def test_no_error_of_the_worker_goes_through_the_session(clock: MockClock) -> None:
    """Whatever fails beside the turns, the session sees no exception, and the run's is kept."""
    agent = LivingAgent()
    rig = living(agent, agent={"max_turns": 2})
    lost = OSError("a bug of the worker's")

    async def fail(_event: object) -> None:
        if agent.sessions:
            raise lost

    rig.on_commit = fail

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert report.end.message == "the run crashed: OSError; the log has the traceback"
    rig.assert_nothing_open()


async def test_a_cancellation_from_outside_is_passed_on(clock: MockClock) -> None:
    """A worker whose surroundings are torn down ends its turn politely, and all that it has."""
    agent = LivingAgent(turn=100)
    rig = living(agent)

    with trio.move_on_after(10) as torn_down:
        await rig.work()

    assert torn_down.cancelled_caught
    assert trio.current_time() == 10 + 1 + 1
    assert [session.polite_ends for session in agent.sessions] == [1]
    rig.assert_nothing_open()
