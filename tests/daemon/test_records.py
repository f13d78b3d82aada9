"""What a running daemon has on record of issues and runs."""

from __future__ import annotations

from trio.testing import MockClock

from sortie.telemetry import facts
from sortie.web.issue import IssueView
from sortie.web.records import HistoryQuery
from tests.agents.fake import Completes, Fails, Silent
from tests.orchestrator.daemon_view import controls_on, view_of
from tests.orchestrator.world import World
from tests.store.records import T0, A, begin, end
from tests.worker.rig import issue


async def test_issues_are_shown_as_they_stand(clock: MockClock) -> None:
    """One that runs, one that waits and one that is held, each with its entry in the state, by
    identifier and by id."""
    world = World(issue("a"), issue("b"), issue("c"))
    world.agent.scripts["A"] = [Silent()]
    world.agent.scripts["B"] = [Fails()]
    world.agent.scripts["C"] = [Completes(status="blocked")]

    async with world.life() as orchestrator:
        controls = controls_on(orchestrator, world)
        await world.until(facts.RetryScheduled)
        await world.until(facts.IssueHeld)
        shown = [await controls.records.issue(name) for name in ("A", "b", "C")]
        state = view_of(orchestrator, world).state()

    running, waiting, held = (one for one in shown if isinstance(one, IssueView))
    assert [one.standing for one in (running, waiting, held)] == ["running", "waiting", "held"]
    assert running.running is not None
    assert running.running.issue_id == "a"
    assert (running.waiting, running.held) == (None, None)
    assert waiting.waiting is not None
    assert waiting.waiting.issue_id == state.waiting[0].issue_id == "b"
    assert held.held == state.held[0]
    assert [run.status for run in waiting.runs] == ["failed"]
    assert [run.status for run in running.runs] == ["running"]


async def test_runs_are_found(clock: MockClock) -> None:
    """All of them by the page, each by its id, and None for what is none."""
    world = World(issue("a"))
    world.agent.scripts["A"] = [Fails()]

    async with world.life() as orchestrator:
        records = controls_on(orchestrator, world).records
        await world.until(facts.RetryScheduled)
        (run,) = await records.history(HistoryQuery(issue="A", limit=5, before=None))
        none = await records.history(HistoryQuery(issue="A", limit=5, before=run.run_id))
        other = await records.history(HistoryQuery(issue="B", limit=5, before=None))
        found = await records.run(run.run_id)
        missing = await records.run("r-none")

    assert (run.issue, run.status, run.error_kind) == ("A", "failed", "turn_failed")
    assert (none, other, found, missing) == ((), (), run, None)


async def test_an_issue_that_is_gone_has_its_runs(clock: MockClock) -> None:
    """Of one that the daemon does not have in hand, what is recorded; of a stranger nothing."""
    world = World()
    await world.store.commit([begin("r1", A), end("r1")], T0)

    async with world.life() as orchestrator:
        records = controls_on(orchestrator, world).records
        await world.until(facts.PollCompleted)
        gone, stranger = await records.issue("A-1"), await records.issue("X-1")

    assert isinstance(gone, IssueView)
    assert (gone.issue_id, gone.standing, gone.title) == (A.id, None, None)
    assert "A-1" in gone.detail
    assert [run.run_id for run in gone.runs] == ["r1"]
    assert isinstance(stranger, str)
    assert "X-1" in stranger
