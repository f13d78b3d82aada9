"""Why an issue failed last: shown with what waits, runs and is held, also after a restart."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from sortie.daemon.last_failures import LastFailures, recorded_failures
from sortie.model import ErrorKind, RunId, RunStatus, StopReason, TrackerErrorKind
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.web.issue import FailureView
from tests.agents.fake import Completes, Fails, Silent
from tests.orchestrator.daemon_view import now, view_of
from tests.orchestrator.world import World
from tests.worker.rig import issue

FAILED = ("turn_failed", "the fake agent fails: turn_failed")


def told(view: FailureView | None) -> tuple[str | None, str] | None:
    return None if view is None else (view.kind, view.message)


async def test_a_wait_and_the_run_after_it_tell_the_failure(clock: MockClock) -> None:
    """Kind and sentence stand with the retry and with the next run, until one ends well."""
    world = World(issue())
    world.agent.scripts["A"] = [Fails(), Silent()]

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.RetryScheduled)
        (waiting,) = view.state().waiting
        await world.until(facts.AgentLaunched, 2)
        (running,) = view.state().running

    first = world.of(facts.RunStarted)[0].run_id
    assert told(waiting.last_failure) == told(running.last_failure) == FAILED
    assert waiting.last_failure is not None
    assert waiting.last_failure.run_id == first


async def test_a_failed_handoff_tells_what_the_tracker_said(clock: MockClock) -> None:
    """While a handoff is tried again, its error stands with the wait; when it succeeds it goes."""
    world = World(issue(), tracker={"handoff_state": "Review"})
    world.tracker.transitions_fail = TrackerErrorKind.UNAVAILABLE

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.TransitionCompleted, 2)
        (waiting,) = view.state().waiting
        world.tracker.transitions_fail = None
        await world.until(facts.TransitionCompleted, where=lambda fact: fact.result == "success")
        after = view.failures.of(issue())

    assert told(waiting.last_failure) == ("handoff_failed", "the fake tracker is unavailable")
    assert after is None


async def test_a_success_ends_it(clock: MockClock) -> None:
    """After a run that ended well nothing is said of an earlier failure."""
    world = World(issue())
    world.agent.scripts["A"] = [Fails(), Completes(), Silent()]

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.AgentLaunched, 3)
        (running,) = view.state().running

    assert running.last_failure is None


async def test_a_stop_is_no_failure(clock: MockClock) -> None:
    """What an operator stopped keeps the failure before it, live and from the record alike."""
    world = World(issue())
    world.agent.scripts["A"] = [Fails(), Silent()]

    async with world.life() as orchestrator:
        view = view_of(orchestrator, world)
        await world.until(facts.AgentLaunched, 2)
        await orchestrator.ask(lambda ask: ev.StopAsked("A", ask))
        await world.until(facts.RunFinished, 2)
        (held,) = view.state().held
    recorded = await recorded_failures(world.store, [issue()])

    assert [stop.reason for stop in world.of(facts.RunStopping)] == [StopReason.OPERATOR]
    assert told(held.last_failure) == told(recorded.get(issue().id)) == FAILED


async def test_a_new_daemon_knows_what_is_recorded(clock: MockClock) -> None:
    """The last failure of each issue is read from history; one that ended well since has none."""
    world = World(issue("a"), issue("b"), agent={"max_sessions": 2})
    world.agent.scripts["A"] = [Fails()]
    world.agent.scripts["B"] = [Fails(), Completes(), Silent()]
    async with world.life():
        await world.until(facts.IssueHeld, 2)

    recorded = await recorded_failures(world.store, [issue("a"), issue("b"), issue("c")])
    known = LastFailures(now, recorded)

    assert told(known.of(issue("a"))) == FAILED
    assert (known.of(issue("b")), known.of(issue("c"))) == (None, None)


@pytest.mark.parametrize(
    ("stopped_for", "is_failure"),
    [(StopReason.OPERATOR, False), (StopReason.TERMINAL, False), (None, True)],
)
def test_only_what_sortie_stopped_itself_is_no_failure(
    stopped_for: StopReason | None, is_failure: bool
) -> None:
    """An agent that somebody else ended has failed, whatever it says of that."""
    failures = LastFailures(now)
    failures(
        facts.RunFinished(
            run_id=RunId("r"),
            issue=issue(),
            status=RunStatus.CANCELLED,
            turns=1,
            seconds=1.0,
            error_kind=ErrorKind.TURN_CANCELLED,
            error="the run was stopped: operator",
            stopped_for=stopped_for,
        )
    )

    assert (failures.of(issue()) is not None) == is_failure
