"""Workspaces of finished issues."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from sortie.telemetry import facts
from tests.agents.fake import Completes
from tests.orchestrator.world import World
from tests.transports.fake import Does
from tests.worker.rig import ROOT, issue


async def test_a_finished_issues_workspace_is_removed(clock: MockClock) -> None:
    """before_remove runs in it, as a part of no run; then directory and record are gone."""
    world = World(issue(), hooks={"before_remove": Does(output=b"saved\n")})
    world.agent.scripts["A"] = [Completes(does=lambda: world.tracker.edit("a", state="Done"))]

    async with world.life() as orchestrator:
        removed = await world.until(facts.WorkspaceRemoved)
        await trio.sleep(1)
        assert dict(orchestrator.snapshot().claims) == {}

    assert removed.error is None
    (hook,) = world.transport.ran
    assert (hook.script, hook.cwd) == ("before_remove", f"{ROOT}/A")
    assert hook.env["SORTIE_ISSUE_IDENTIFIER"] == "A"
    assert f"{ROOT}/A" not in world.transport.files.directories
    assert (await world.store.recover()).workspaces == ()


async def test_a_removal_that_crashes_is_retried(clock: MockClock) -> None:
    """An exception that no transport should raise costs one try."""
    world = World(issue())
    world.agent.scripts["A"] = [Completes(does=lambda: world.tracker.edit("a", state="Done"))]
    world.transport.faults["remove_directory"] = LookupError("a bug")

    async with world.life():
        await world.until(facts.WorkspaceRemoved)
        del world.transport.faults["remove_directory"]
        await world.until(facts.WorkspaceRemoved, 2)

    assert [fact.where for fact in world.of(facts.AdapterCrashed)] == ["clean"]
    assert world.of(facts.WorkspaceRemoved)[1].error is None


async def test_no_workspace_is_removed_under_a_process(clock: MockClock) -> None:
    """While something lives in the directory it stays."""
    world = World(issue())
    world.agent.scripts["A"] = [Completes(does=lambda: world.tracker.edit("a", state="Done"))]
    world.transport.squatters[f"{ROOT}/A"] = [4711]

    async with world.life():
        failed = await world.until(facts.WorkspaceRemoved)
        there = f"{ROOT}/A" in world.transport.files.directories
        world.transport.squatters.clear()
        await world.until(facts.WorkspaceRemoved, 2)

    assert there
    assert "4711" in (failed.error or "")


async def test_a_stop_while_a_workspace_is_made_leaves_none_behind(clock: MockClock) -> None:
    """An issue that is finished in that very moment leaves no directory."""
    world = World(issue(), agent={"max_turns": 3})
    world.transport.pauses["read_file"] = 50.0

    async with world.life():
        await world.until(facts.RunStarted)
        world.tracker.edit("a", state="Done")
        await world.until(facts.WorkspaceRemoved)

    assert world.agent.begun == []
    assert f"{ROOT}/A" not in world.transport.files.directories


async def test_a_workspace_with_work_in_it_is_kept_until_it_is_pushed(clock: MockClock) -> None:
    """It is told once, no hook runs, and it stays over a restart; then it is removed."""
    world = World(issue(), hooks={"before_remove": Does()})
    world.agent.scripts["A"] = [Completes(does=lambda: world.tracker.edit("a", state="Done"))]
    world.transport.answer = b"tree 1 2 sortie/A\nend\n"

    async with world.life() as orchestrator:
        first = await world.until(facts.WorkspaceKept)
        await trio.sleep(7200)
        (cleaning,) = orchestrator.snapshot().kept
        told = len(world.of(facts.WorkspaceKept))
    async with world.life():
        second = await world.until(facts.WorkspaceKept, 2)
        ran, there = list(world.transport.ran), f"{ROOT}/A" in world.transport.files.directories
        world.transport.answer = b"end\n"
        await world.until(facts.WorkspaceRemoved)

    reason = "1 uncommitted change and 2 unpushed commits (on branch sortie/A)"
    assert (first.reason, first.path, first.host) == (reason, f"{ROOT}/A", "local")
    assert first.seconds == 14 * 86_400
    assert (told, cleaning.kept[0].reason, cleaning.error) == (1, reason, None)
    assert second.seconds <= first.seconds - 7200
    assert (ran, there) == ([], True)
    assert [hook.hook for hook in world.of(facts.HookCompleted)] == ["before_remove"]
    assert (await world.store.recover()).workspaces == ()
