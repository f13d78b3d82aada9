"""A run leaves nothing open, however and whenever it ends."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.facts import Phase
from sortie.model import AgentError, ErrorKind, Failed, Finished, RunReport, Stopped, TurnOutcome
from sortie.resources.lease import LeaseLost
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from tests.agents.fake import Chats, Completes, Fails, Raises, Silent, Step
from tests.transports.fake import NEVER, Does
from tests.worker.rig import HOOKS, ROOT, USED, Rig

ENDINGS: dict[str, tuple[Step, type]] = {
    "success": (Completes(), Finished),
    "failure": (Fails(), Failed),
    "an error of the agent": (
        Raises(error=AgentError(ErrorKind.RESPONSE_TIMEOUT, "no answer")),
        Failed,
    ),
    "a timeout": (Chats(every=10, times=100), Failed),
    "silence": (Silent(), Failed),
    "blocked": (Completes(status="blocked"), Finished),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_after_run_runs_whatever_the_end(clock: MockClock, ending: str) -> None:
    """Every way for a turn to end is followed by the session's end and one after_run."""
    step, kind = ENDINGS[ending]
    rig = Rig(hooks=HOOKS, agent={"turn_timeout_ms": 60_000, "stall_timeout_ms": 30_000})
    rig.agent.scripts["A"] = [step]

    report = await rig.work()

    assert isinstance(report.end, kind)
    assert rig.journal[-3:] == ["session ends", "phase ending", "runs after_run"]
    rig.assert_nothing_open()


@pytest.mark.parametrize("where", ["entering", "run_turn", "leaving"])
async def test_after_run_runs_when_the_agent_crashes(clock: MockClock, where: str) -> None:
    """An exception that no agent should raise ends the run as an internal error, in order."""
    rig = Rig(hooks=HOOKS)
    crash = LookupError("a bug")
    match where:
        case "entering":
            rig.agent.refusals["A"].append(crash)
        case "run_turn":
            rig.agent.scripts["A"] = [Raises(error=crash)]
        case _:
            rig.agent.stop_error = crash

    report = await rig.work()

    assert report.end == Failed(
        kind=ErrorKind.INTERNAL_ERROR,
        message="the run crashed: LookupError; the log has the traceback",
    )
    assert [ran.script for ran in rig.transport.ran] == list(HOOKS)
    crashed = rig.of(facts.AdapterCrashed)
    assert [fact.where for fact in crashed] == ["worker"]
    assert "a bug" in crashed[0].traceback
    rig.assert_nothing_open()


async def test_a_lost_lease_is_no_failure_of_the_run(clock: MockClock) -> None:
    """Another daemon goes on with the issue: no traceback is told, and no attempt is counted."""
    rig = Rig(hooks=HOOKS)
    rig.agent.scripts["A"] = [Raises(error=LeaseLost("a newer leader has taken the host over"))]

    report = await rig.work()

    assert report.end == Failed(
        kind=ErrorKind.PORT_EXIT,
        message="a newer leader has taken the host over",
        shortage=True,
    )
    assert rig.of(facts.AdapterCrashed) == []
    rig.assert_nothing_open()


async def test_a_crash_keeps_what_was_spent(clock: MockClock) -> None:
    """Turns and credits before the crash are reported, and the crashed turn did not complete."""
    rig = Rig(agent={"max_turns": 3})
    rig.agent.scripts["A"] = [Completes(credits=0.5), Raises(error=LookupError("a bug"))]

    report = await rig.work()

    assert (report.turns, report.spent.credits, report.seconds) == (2, 0.5, 2.0)
    assert [(f.outcome, f.error_kind) for f in rig.of(facts.TurnCompleted)] == [
        (TurnOutcome.COMPLETED, None),
        (TurnOutcome.FAILED, ErrorKind.INTERNAL_ERROR),
    ]


async def test_a_session_that_does_not_stop_is_given_up(clock: MockClock) -> None:
    """An adapter that hangs in leaving a session holds the run for a bounded time."""
    rig = Rig(hooks=HOOKS)
    rig.agent.stop_hangs = True

    with trio.fail_after(300):
        report = await rig.work()

    assert report.end == USED
    assert rig.journal[-1] == "runs after_run"


AFTER_RUN_AT = 21.0
"""When, in the next two tests, the turns are over and ``after_run`` begins."""


@pytest.mark.parametrize("after", [0.25 + step / 2 for step in range(46)])
async def test_a_stop_at_any_moment_leaves_nothing_open(clock: MockClock, after: float) -> None:
    """A stop in each phase reports Stopped, and whether the last turn had succeeded by then;
    after_run has run where there was a workspace."""
    rig = Rig(
        hooks={name: Does(seconds=1) for name in HOOKS},
        tracker={"in_progress_state": "Doing"},
        agent={"max_turns": 2},
    )
    rig.tracker.delay = rig.agent.start_seconds = 1.0
    rig.transport.pauses.update({"contained": 1.0, "read_file": 1.0})

    report = await rig.work_stopped_at(after)

    turns = {fact.turn: fact.outcome for fact in rig.of(facts.TurnCompleted)}
    completed = turns.get(report.turns) is TurnOutcome.COMPLETED
    assert report.end == (USED if after > AFTER_RUN_AT else Stopped(completed=completed))
    rig.assert_nothing_open()
    entered = "runs before_run" in rig.journal
    assert ("runs after_run" in rig.journal) is entered
    made = f"{ROOT}/A" in rig.transport.files.directories
    known = [event for event in rig.told if isinstance(event, ev.WorkspaceMade)]
    assert len(known) == made


async def test_the_stops_reach_every_phase(clock: MockClock) -> None:
    """The moments of the test above lie in all phases of a run without a repository."""
    rig = Rig(
        hooks={name: Does(seconds=1) for name in HOOKS},
        tracker={"in_progress_state": "Doing"},
        agent={"max_turns": 2},
    )
    rig.tracker.delay = rig.agent.start_seconds = 1.0
    rig.transport.pauses.update({"contained": 1.0, "read_file": 1.0})

    report = await rig.work()

    assert report.end == USED
    assert report.seconds == AFTER_RUN_AT + 2  # a second of it to look where the workspace is
    assert {fact.phase for fact in rig.of(facts.RunPhaseChanged)} == (
        set(Phase) - {Phase.DELIVERY, Phase.REVIEW}
    )


async def test_a_stop_that_came_first_starts_nothing(clock: MockClock) -> None:
    """A worker that is stopped before its first step does nothing."""
    rig = Rig(hooks=HOOKS, tracker={"in_progress_state": "Doing"})
    rig.scopes.stop()

    report = await rig.work()

    assert report == RunReport(end=Stopped())
    assert rig.journal == ["phase starting"]
    assert rig.tracker.moves == []


async def test_a_stopped_run_gets_its_after_run(clock: MockClock) -> None:
    """A stop waits for the agent's end and then for the hook."""
    rig = Rig(hooks={"after_run": Does(seconds=20)})
    rig.agent.scripts["A"] = [Silent(clings=3)]

    report = await rig.work_stopped_at(10)

    assert report == RunReport(end=Stopped(), turns=1, seconds=33.0)
    assert [ran.exit.status for ran in rig.transport.processes_of("after_run")] == [0]
    assert [(f.outcome, f.error_kind) for f in rig.of(facts.TurnCompleted)] == [
        (TurnOutcome.CANCELLED, ErrorKind.TURN_CANCELLED)
    ]


async def test_a_cut_ends_after_run_too(clock: MockClock) -> None:
    """A cut reaches the hook that a stop does not, and what would follow it."""
    rig = Rig(hooks={"after_run": NEVER})
    rig.agent.scripts["A"] = [Silent()]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.work_stopped_at, 10)
        await trio.sleep(20)
        assert len(rig.transport.alive) == 1
        rig.scopes.cut()
    ended_at = trio.current_time()

    assert [ran.exit.by_us for ran in rig.transport.processes_of("after_run")] == [True]
    assert ended_at < 30
    rig.assert_nothing_open()


@pytest.mark.parametrize("after", [0.25 + step / 2 for step in range(44)])
async def test_a_cut_at_any_moment_leaves_nothing_open(clock: MockClock, after: float) -> None:
    """A cut ends whatever is under way, clean-up included, and starts nothing more."""
    rig = Rig(
        hooks={name: Does(seconds=1) for name in HOOKS},
        tracker={"in_progress_state": "Doing"},
        agent={"max_turns": 2},
    )
    rig.tracker.delay = rig.agent.start_seconds = 1.0
    rig.transport.pauses.update({"contained": 1.0, "read_file": 1.0})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.work)
        await trio.sleep(after)
        rig.scopes.cut()
        entries = len(rig.journal)

    assert trio.current_time() == after
    assert [entry for entry in rig.journal[entries:] if entry.startswith("runs")] == []
    rig.assert_nothing_open()
