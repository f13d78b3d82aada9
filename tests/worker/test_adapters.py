"""Adapters that do what their port forbids: one run fails, and nothing of it is left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.agents import OnEvents, SessionParams
from sortie.model import (
    NOTHING,
    ErrorKind,
    Failed,
    Issue,
    ProcessIdentity,
    RunReport,
    Stopped,
    TurnOutcome,
    TurnResult,
)
from sortie.model.turns import (
    AgentEvent,
    Launched,
    Notification,
    PermissionAsked,
    SessionKnown,
    ToolStarted,
    TurnTraced,
    TurnUntraced,
    Usage,
)
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.worker.session import SESSION_START_SLACK
from tests.agents.fake import FakeSession
from tests.worker.rig import HOOKS, USED, Rig

LAUNCHED = Launched(process=ProcessIdentity(pid=1 << 24, started_at=0.0))
NONE: Any = None
GOOD = TurnResult(outcome=TurnOutcome.COMPLETED)


def assert_failed_alone(rig: Rig, report: RunReport) -> None:
    """Fail unless the run ended as the adapter's fault, told once, with everything put away."""
    assert isinstance(report.end, Failed)
    assert report.end.kind is ErrorKind.INTERNAL_ERROR
    assert [fact.where for fact in rig.of(facts.AdapterCrashed)] == ["worker"]
    assert rig.journal[-1] == "runs after_run"
    rig.assert_nothing_open()


@pytest.mark.parametrize(
    "batch",
    [
        None,
        7,
        [None],
        ["a line"],
        [Notification(message=NONE)],
        [Notification(message="none", lines=0)],
        [Notification(message="some", lines=NONE)],
        [Notification(message="many", lines=2**70)],
        [Launched(process=NONE)],
        [LAUNCHED, object()],
        [Usage(credits=float("nan"))],
        [Usage(cost=float("inf"))],
        [Usage(credits=-0.5)],
        [Usage(output_tokens=-1)],
        [Usage(input_tokens=2**70, cumulative=True)],
        [Usage(context_share=1.5)],
        [Usage(cache_write_tokens=True)],
        [Usage(cost=1.0, currency=5)],  # type: ignore[arg-type]
        [Usage(input_tokens=1, model=5)],  # type: ignore[arg-type]
        [Usage(cached_tokens=NONE, input_tokens="7")],  # type: ignore[arg-type]
        [SessionKnown(session_id=NONE)],
        [SessionKnown(session_id="")],
        [SessionKnown(session_id="x" * 201)],
        [SessionKnown(session_id="a\nb")],
        [ToolStarted(id=NONE, name="shell")],
        [ToolStarted(id="1", name="shell", locations=(NONE,))],
        [TurnTraced(model=NONE, answer=7)],  # type: ignore[arg-type]
        [TurnTraced(model=7)],  # type: ignore[arg-type]
        [TurnUntraced(reason=NONE)],
        [PermissionAsked(question=NONE, answer="no")],
    ],
)
async def test_events_that_are_none_fail_the_run(clock: MockClock, batch: Any) -> None:
    """What is no event is an error of the adapter, and never reaches scheduler or store."""
    rig = Rig(hooks=HOOKS)
    healthy = rig.agent.play

    async def play(session: FakeSession, prompt: str, on_event: OnEvents) -> TurnResult:
        on_event(batch)
        return await healthy(session, prompt, on_event)

    setattr(rig.agent, "play", play)  # noqa: B010
    report = await rig.work()

    assert_failed_alone(rig, report)
    (turn,) = rig.of(facts.TurnCompleted)
    assert (turn.outcome, turn.error_kind) == (TurnOutcome.FAILED, ErrorKind.INTERNAL_ERROR)
    processes = [e.process for e in rig.told if isinstance(e, ev.ProcessLaunched)]
    assert None not in processes


@pytest.mark.parametrize(
    "result",
    [
        None,
        "completed",
        replace(GOOD, outcome=NONE),
        replace(GOOD, resets_at=datetime(2026, 11, 22)),
        replace(GOOD, resets_at="5pm"),
    ],
)
async def test_a_result_that_nobody_could_record_fails_the_run(
    clock: MockClock, result: object
) -> None:
    """It is neither a timeout nor a success, and costs no one else's record."""
    rig = Rig(hooks=HOOKS)
    healthy = rig.agent.play

    async def play(session: FakeSession, prompt: str, on_event: OnEvents) -> object:
        await healthy(session, prompt, on_event)
        return result

    setattr(rig.agent, "play", play)  # noqa: B010
    report = await rig.work()

    assert_failed_alone(rig, report)
    assert report.spent == NOTHING


async def test_events_after_the_turn_change_nothing(clock: MockClock) -> None:
    """An adapter that goes on talking after its turn, and after the run, harms neither."""
    rig = Rig(hooks=HOOKS, agent={"max_turns": 2})
    healthy = rig.agent.play
    kept: list[OnEvents] = []

    async def play(session: FakeSession, prompt: str, on_event: OnEvents) -> TurnResult:
        for earlier in kept:
            earlier([Notification(message="late")])
            earlier([])
        kept.append(on_event)
        return await healthy(session, prompt, on_event)

    setattr(rig.agent, "play", play)  # noqa: B010
    report = await rig.work()
    events: list[AgentEvent] = [LAUNCHED, Notification(message="much later")]
    for each in kept:
        each(events)

    assert (report.end, report.turns) == (USED, 2)
    rig.assert_nothing_open()


async def test_a_session_that_is_none_fails_the_run(clock: MockClock) -> None:
    """An adapter that returns no session has no turn."""
    rig = Rig(hooks=HOOKS)

    @asynccontextmanager
    async def session(_params: SessionParams) -> AsyncIterator[object]:
        await trio.lowlevel.checkpoint()
        yield NONE

    setattr(rig.agent, "session", session)  # noqa: B010
    report = await rig.work()

    assert_failed_alone(rig, report)
    assert report.turns == 0


async def test_a_session_that_never_starts_is_given_up(clock: MockClock) -> None:
    """The run fails in a bounded time as a read timeout, and its hook still runs."""
    rig = Rig(hooks=HOOKS, agent={"read_timeout_ms": 5000})
    rig.agent.start_seconds = 86_400.0

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert report.end.kind is ErrorKind.RESPONSE_TIMEOUT
    assert report.seconds == 5.0 + SESSION_START_SLACK
    (refused,) = rig.of(facts.SessionRefused)
    assert refused.timed_out
    assert rig.journal[-1] == "runs after_run"
    rig.assert_nothing_open()


async def test_a_stop_does_not_wait_for_a_session_to_start(clock: MockClock) -> None:
    """A run whose adapter hangs is stopped as fast as any other."""
    rig = Rig(hooks=HOOKS)
    rig.agent.start_seconds = 86_400.0

    report = await rig.work_stopped_at(1.0)

    assert (report.end, report.seconds) == (Stopped(), 1.0)
    assert rig.journal[-1] == "runs after_run"


async def test_a_move_that_was_cut_off_is_not_told_as_made(clock: MockClock) -> None:
    """A daemon that leaves at once while the tracker hangs does not claim what it cannot know."""
    rig = Rig(tracker={"in_progress_state": "Doing"})

    async def hang(_issue: Issue, _state: str) -> Issue:
        await trio.sleep_forever()
        raise AssertionError

    setattr(rig.tracker, "transition", hang)  # noqa: B010
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cut_after, rig, 3.0)
        report = await rig.work()

    assert (report.end, report.seconds) == (Stopped(), 3.0)
    assert [fact.result for fact in rig.of(facts.TransitionCompleted)] == ["error"]
    assert rig.agent.begun == []


async def cut_after(rig: Rig, seconds: float) -> None:
    """End the worker without mercy after some seconds."""
    await trio.sleep(seconds)
    rig.scopes.cut()
