"""The order of a run's phases, and what fails in each of them."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.model import (
    LOCAL,
    AgentError,
    ErrorKind,
    Failed,
    KnownWorkspace,
    RunReport,
    RunStatus,
    TrackerErrorKind,
    TransportError,
    TurnOutcome,
)
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from tests.agents.fake import Completes, Fails
from tests.worker.rig import HOOKS, ROOT, RUN, USED, Rig, issue

WORKSPACE = f"{ROOT}/A"


async def test_a_run_goes_through_its_phases_in_order(clock: MockClock) -> None:
    """Transition, workspace, after_create, before_run, session, turns, its end, after_run."""
    rig = Rig(hooks=HOOKS, tracker={"in_progress_state": "Doing"}, agent={"max_turns": 2})

    report = await rig.work()

    assert rig.journal == [
        "phase starting",
        "transition to Doing: success",
        "phase workspace",
        "workspace on disk",
        "phase hook",
        "runs after_create",
        "phase hook",
        "runs before_run",
        "phase session",
        "session begins",
        "phase turn",
        "turn 1 on disk",
        "turn 1 begins",
        "turn 1 ends",
        "phase reread",
        "phase turn",
        "turn 2 on disk",
        "turn 2 begins",
        "turn 2 ends",
        "phase reread",
        "session ends",
        "phase ending",
        "runs after_run",
    ]
    assert report == RunReport(end=USED, turns=2, seconds=2.0)
    rig.assert_nothing_open()


async def test_a_run_does_not_begin_beside_a_stranger(clock: MockClock) -> None:
    """No hook runs and no session begins where somebody lives; what runs left is told of."""
    rig = Rig(hooks=HOOKS)
    await rig.work()
    rig.journal.clear()
    rig.facts.clear()
    rig.transport.squatters[WORKSPACE] = [4711]
    rig.transport.leftovers[f"{WORKSPACE}/sub"] = [1, 2]

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert (report.end.kind, report.end.occupied) == (ErrorKind.WORKSPACE_ERROR, True)
    assert "4711" in report.end.message
    assert rig.journal == ["phase starting", "phase workspace"]
    assert rig.of(facts.OrphansReaped) == [facts.OrphansReaped(where=LOCAL, count=2)]
    rig.assert_nothing_open()


async def test_a_run_begins_when_what_runs_left_is_ended(clock: MockClock) -> None:
    """It is told of, and nothing else is different."""
    rig = Rig()
    await rig.work()
    rig.facts.clear()
    rig.transport.leftovers[WORKSPACE] = [1, 2, 3]

    report = await rig.work()

    assert report.end == USED
    assert rig.of(facts.OrphansReaped) == [facts.OrphansReaped(where=LOCAL, count=3)]
    assert rig.transport.leftovers == {}


async def test_what_is_reported_can_be_acted_on(clock: MockClock) -> None:
    """The scheduler hears of the move, the workspace, each turn and each process, in order."""
    rig = Rig(tracker={"in_progress_state": "Doing"})
    known = KnownWorkspace(issue_id=rig.issue.id, identifier="A", host=LOCAL, path=f"{ROOT}/A")

    await rig.work()

    moved = issue(state="Doing")
    launched = rig.of(facts.AgentLaunched)[0]
    assert rig.told == [
        ev.IssueMoved(RUN, moved, True),
        ev.WorkspaceMade(RUN, known, True),
        ev.TurnStarted(RUN, 1),
        ev.ProcessLaunched(RUN, launched.process),
        ev.IssueMoved(RUN, moved),
    ]


async def test_a_move_that_is_cut_short_is_told_with_the_reason(clock: MockClock) -> None:
    """A stop waits for the move under way; a daemon that leaves at once does not, and says so."""
    rig = Rig(tracker={"in_progress_state": "Doing"})
    rig.tracker.delay = 20.0

    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.work)
        await trio.sleep(1.0)
        rig.scopes.stop()
        await trio.sleep(1.0)
        after_the_stop = rig.of(facts.TransitionCompleted)
        rig.scopes.cut()

    assert after_the_stop == []
    assert [(fact.result, fact.error) for fact in rig.of(facts.TransitionCompleted)] == [
        ("error", "the daemon was told to leave at once")
    ]


async def test_a_move_that_fails_does_not_fail_the_run(clock: MockClock) -> None:
    """The failure is told, and the run goes on under the state that the issue has."""
    rig = Rig(tracker={"in_progress_state": "Doing"})
    rig.tracker.transitions_fail = TrackerErrorKind.PERMISSION

    report = await rig.work()

    assert report.end == USED
    assert rig.of(facts.TransitionCompleted) == [
        facts.TransitionCompleted(
            issue=rig.issue,
            lifecycle="dispatch",
            state="Doing",
            result="error",
            error="the fake tracker is permission",
        )
    ]


async def test_an_issue_in_progress_is_not_moved(clock: MockClock) -> None:
    """States are compared as the tracker's users would."""
    rig = Rig(tracker={"in_progress_state": "Doing"}, present=issue(state=" doing"))

    await rig.work()

    assert rig.tracker.moves == []
    assert rig.of(facts.TransitionCompleted) == []


@pytest.mark.parametrize("method", ["make_directory", "write_file"])
async def test_a_workspace_that_cannot_be_made_fails_the_run(clock: MockClock, method: str) -> None:
    """The transport's words are in the run's error, and nothing else was done."""
    rig = Rig(hooks=HOOKS)
    rig.transport.faults[method] = TransportError("no space left on device")

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert report.end.kind is ErrorKind.WORKSPACE_ERROR
    assert "no space left on device" in report.end.message
    assert (rig.transport.ran, rig.agent.begun) == ([], [])


async def test_a_workspace_that_moved_away_is_not_used(clock: MockClock) -> None:
    """The place is verified before the session and before each turn."""
    rig = Rig(agent={"max_turns": 5})
    rig.agent.scripts["A"] = [
        Completes(),
        Completes(does=lambda: rig.transport.files.directories.discard(f"{ROOT}/A")),
    ]

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert (report.end.kind, report.turns) == (ErrorKind.INVALID_WORKSPACE_CWD, 2)


async def test_an_agent_that_refuses_a_session_fails_the_run(clock: MockClock) -> None:
    """The agent's kind and words are the run's, and after_run has run."""
    rig = Rig(hooks=HOOKS)
    rig.agent.refusals["A"].append(AgentError(ErrorKind.AGENT_NOT_FOUND, "no kiro here"))

    report = await rig.work()

    assert report == RunReport(end=Failed(kind=ErrorKind.AGENT_NOT_FOUND, message="no kiro here"))
    assert rig.of(facts.SessionRefused) == [
        facts.SessionRefused(run_id=RUN, error_kind=ErrorKind.AGENT_NOT_FOUND, error="no kiro here")
    ]
    assert rig.journal[-1] == "runs after_run"


async def test_a_failed_turn_ends_the_run_as_it_failed(clock: MockClock) -> None:
    """The agent's death that Sortie did not cause is a cancelled run with its own kind."""
    rig = Rig()
    rig.agent.scripts["A"] = [Fails(kind=ErrorKind.TURN_CANCELLED, outcome=TurnOutcome.CANCELLED)]

    report = await rig.work()

    assert report.end == Failed(
        kind=ErrorKind.TURN_CANCELLED,
        message="the fake agent fails: turn_cancelled",
        status=RunStatus.CANCELLED,
    )


async def test_a_workspace_is_on_disk_before_a_hook_and_else_with_the_first_turn(
    clock: MockClock,
) -> None:
    """A commit of its own is made only where something runs before the first turn."""
    hooked, plain = Rig(hooks=HOOKS), Rig()

    await hooked.work()
    await plain.work()

    assert hooked.journal.index("workspace on disk") < hooked.journal.index("runs after_create")
    assert "workspace on disk" not in plain.journal
    told = [type(event) for event in plain.told]
    assert told.index(ev.WorkspaceMade) < told.index(ev.TurnStarted)
