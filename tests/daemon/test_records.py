"""What a running daemon has on record of issues and runs."""

from __future__ import annotations

from dataclasses import replace

import trio
from trio.testing import MockClock

from sortie.daemon.recent_activity import RecentActivity
from sortie.daemon.wall_time import utc_now
from sortie.model import RunSummary
from sortie.telemetry import facts
from sortie.web.issue import IssueView, WorkspaceView
from tests.agents.fake import Completes, Fails, Silent
from tests.orchestrator.daemon_view import view_of
from tests.orchestrator.world import HANDOFF, World
from tests.store.records import T0, A, begin, end, workspace
from tests.worker.rig import issue

ASKED = "It is <b>broken</b>.\nMend it."


async def test_issues_are_shown_as_they_stand(clock: MockClock) -> None:
    """One that runs, one that waits and one that is held, each with its entry in the state, by
    identifier and by id."""
    world = World(issue("a"), issue("b"), issue("c"))
    world.agent.scripts["A"] = [Silent()]
    world.agent.scripts["B"] = [Fails()]
    world.agent.scripts["C"] = [Completes(status="blocked")]

    async with world.life() as orchestrator:
        controls = view_of(orchestrator, world)
        await world.until(facts.RetryScheduled)
        await world.until(facts.IssueHeld)
        shown = [await controls.issue(name) for name in ("A", "b", "C")]
        state = view_of(orchestrator, world).state()

    running, waiting, held = (one for one in shown if isinstance(one, IssueView))
    assert [one.standing for one in (running, waiting, held)] == ["running", "waiting", "held"]
    assert running.running is not None
    assert running.running.issue_id == "a"
    assert (running.waiting, running.held) == (None, None)
    assert waiting.waiting is not None
    assert waiting.waiting.issue_id == state.waiting[0].issue_id == "b"
    assert held.held is not None
    # Times of the real clock and of the virtual one are a moment apart in two looks.
    assert held.held == replace(state.held[0], since=held.held.since)
    assert [run.status for run in waiting.runs] == ["failed"]
    assert [run.status for run in running.runs] == ["running"]


async def test_runs_are_found(clock: MockClock) -> None:
    """All of them by the page, each by its id, and None for what is none."""
    world = World(issue("a"))
    world.agent.scripts["A"] = [Fails()]

    async with world.life() as orchestrator:
        records = view_of(orchestrator, world)
        await world.until(facts.RetryScheduled)
        (run,) = await records.history(issue="A", limit=5, before=None)
        none = await records.history(issue="A", limit=5, before=run.run_id)
        other = await records.history(issue="B", limit=5, before=None)
        found = await records.run(run.run_id)
        missing = await records.run("r-none")

    assert (run.issue, run.status, run.error_kind) == ("A", "failed", "turn_failed")
    assert (none, other, found, missing) == ((), (), run, None)


async def test_an_issue_that_is_gone_has_its_runs(clock: MockClock) -> None:
    """Of one that the daemon does not have in hand, what is recorded, the last run's summary and
    workspace among it; of a stranger nothing."""
    world = World()
    left = RunSummary(answer="Done.", branch="a-1", head_commit="c0ffee", commits=2)
    over = end("r1", state="Rework", summary=left)
    await world.store.commit([begin("r1", A), workspace("r1", A), over], T0)

    async with world.life() as orchestrator:
        records = view_of(orchestrator, world)
        await world.until(facts.PollCompleted)
        gone, stranger = await records.issue("A-1"), await records.issue("X-1")

    assert isinstance(gone, IssueView)
    assert (gone.issue_id, gone.standing, gone.title) == (A.id, None, A.title)
    assert gone.state == "Rework"
    assert "as succeeded, it was in Rework" in gone.detail
    assert (gone.runs[0].answer, gone.runs[0].commits) == ("Done.", 2)
    assert gone.workspace == WorkspaceView(host="local", path="/w/A-1")
    assert [run.run_id for run in gone.runs] == ["r1"]
    assert isinstance(stranger, str)
    assert "X-1" in stranger


async def test_an_issue_that_was_handed_off_is_told_as_such(clock: MockClock) -> None:
    """Right after the handoff, and by the next life: its state, its last run, where its work is;
    and the overview lists it."""
    world = World(issue("a", description=ASKED), tracker=HANDOFF)
    seen = []

    for told in (facts.TransitionCompleted, facts.PollCompleted):
        async with world.life() as orchestrator:
            controls = view_of(orchestrator, world)
            await world.until(told)
            await trio.sleep(1)
            recent = RecentActivity(utc_now)
            await recent.recall(world.store)
            seen.append((await controls.issue("A"), recent.view().handed_off))

    for found, (listed,) in seen:
        assert isinstance(found, IssueView)
        assert (found.standing, found.title, found.state) == ("handed_off", "Mend a", "Review")
        assert found.detail.startswith("it was handed off at")
        assert found.workspace == WorkspaceView(host="local", path="/root/A")
        assert found.runs[0].handed_off_at is not None
        assert (found.description, found.runs[0].description) == (ASKED, ASKED)
        assert (listed.issue_identifier, listed.title, listed.state) == ("A", "Mend a", "Review")
