"""Editing issues and WORKFLOW.md under a running daemon."""

from __future__ import annotations

import signal

from tests.e2e.conftest import Start
from tests.e2e.place import STUBBORN_HOOK, Place
from tests.e2e.ways_of_ending import requires_a_mount


async def test_an_issue_that_is_added_is_worked_on(place: Place, start: Start) -> None:
    """New files, and an issue that comes back to an active state, are seen without a restart."""
    async with start() as daemon:
        await daemon.line("daemon.started")
        place.add_issue("LATE")
        await daemon.line("issue.moved", issue="LATE", lifecycle="handoff")
        place.add_issue("LATE", "credits=1")
        await daemon.line("issue.moved", issue="LATE", lifecycle="handoff", nth=2)
        metrics = await daemon.metrics()

    assert metrics.total("sortie_turn_credits_total", agent="kiro") == 1.05


async def test_a_limit_applies_at_once_and_a_prompt_to_the_next_run(
    place: Place, start: Start
) -> None:
    """A raised limit starts the issue that waited; the run under way keeps its prompt."""
    place.write_workflow(
        "sim: delay=600",
        agent={"command": "sortie-kiro-sim", "max_turns": 1, "max_concurrent_agents": 1},
    )
    place.add_issue("A", priority=1)
    place.add_issue("B", priority=2)

    async with start() as daemon:
        await daemon.line("agent.simulated")
        await daemon.line("turn.started", issue="A")
        before = await daemon.state()
        place.write_workflow(
            "sim: write=word-of-the-new-prompt",
            agent={"command": "sortie-kiro-sim", "max_turns": 1, "max_concurrent_agents": 2},
        )
        await daemon.line("workflow.reloaded")
        await daemon.line("issue.moved", issue="B", lifecycle="handoff")
        after, metrics = await daemon.state(), await daemon.metrics()

    assert (before["slots"]["total"], before["slots"]["free"]) == (1, 0)
    assert (after["slots"]["total"], after["slots"]["free"]) == (2, 1)
    assert [run["issue_identifier"] for run in after["running"]] == ["A"]
    assert (place.workspaces / "B" / "word-of-the-new-prompt").is_file()
    assert metrics.total("sortie_workflow_reloads_total", result="success") == 1


async def test_a_broken_workflow_stops_nothing_and_is_mended_without_a_restart(
    place: Place, start: Start
) -> None:
    """While it is broken its errors are shown and issues run as before; so when it is away."""
    good = place.workflow.read_text()

    async with start() as daemon:
        await daemon.ready()
        place.write_text(good.replace('"max_turns": 1', '"max_turns": "many", "max_trns": 1'))
        errors = [await daemon.line("workflow.invalid", nth=n + 1) for n in range(2)]
        broken, metrics = await daemon.state(), await daemon.metrics()
        place.add_issue("A")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        place.workflow.unlink()
        await daemon.line("workflow.kept", nth=2)
        place.add_issue("B")
        await daemon.line("issue.moved", issue="B", lifecycle="handoff")
        place.write_text(good)
        await daemon.line("workflow.reloaded")
        mended, after = await daemon.state(), await daemon.metrics()

    told = sorted(line["error"] for line in errors)
    assert [error.split(": ")[1] for error in told] == ["agent.max_turns", "agent.max_trns"]
    assert all(error.startswith("WORKFLOW.md:") for error in told)
    assert broken["workflow"]["path"] == str(place.workflow)
    assert broken["workflow"]["valid"] is False
    assert sorted(broken["workflow"]["errors"]) == told
    assert metrics.total("sortie_workflow_valid") == 0
    assert (mended["workflow"]["valid"], mended["workflow"]["errors"]) == (True, [])
    assert after.total("sortie_workflow_valid") == 1
    assert after.total("sortie_workflow_reloads_total", result="error") == 2


async def test_an_issue_that_becomes_terminal_ends_its_run_and_its_workspace(
    place: Place, start: Start
) -> None:
    """Done stops the agent and removes the directory; a state of its own keeps the directory."""
    place.add_issue("DONE", "hang=1")
    place.add_issue("PARKED", "hang=1")

    async with start() as daemon:
        for name in ("DONE", "PARKED"):
            await daemon.line("turn.started", issue=name)
        place.add_issue("DONE", "hang=1", state="Done")
        place.add_issue("PARKED", "hang=1", state="Backlog")
        await daemon.line("run.finished", issue="PARKED", status="cancelled")
        await daemon.line("run.finished", issue="DONE", status="cancelled")
        await daemon.line("workspace.removed", issue="DONE")
        state = await daemon.state()

    assert set(state["counts"].values()) == {0}
    assert not (place.workspaces / "DONE").exists()
    assert (place.workspaces / "PARKED").is_dir()


@requires_a_mount
async def test_a_change_during_the_start_is_not_lost(
    place: Place, start_without_cgroups: Start
) -> None:
    """What is saved after the file was read, while the last run is still being ended, counts."""
    place.write_workflow(
        agent={"command": "sortie-kiro-sim", "stop_grace_ms": 2000, "max_turns": 1},
        hooks={"before_run": STUBBORN_HOOK},
    )
    place.add_issue("A")

    async with start_without_cgroups() as daemon:
        await place.until_there("ready")
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    async with start_without_cgroups() as daemon:
        await place.until_there("asked")
        place.write_workflow(agent={"max_concurrent_agents": 3, "max_turns": 1}, hooks={})
        await daemon.line("workflow.reloaded", within=10)
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        state = await daemon.state()

    assert state["slots"]["total"] == 3


async def test_sighup_reads_the_file_again(place: Place, start: Start) -> None:
    """The signal reloads even where nothing changed, and ends nothing."""
    async with start() as daemon:
        await daemon.line("daemon.started")
        daemon.signal(signal.SIGHUP)
        await daemon.line("workflow.reloaded")
        daemon.signal(signal.SIGHUP)
        await daemon.line("workflow.reloaded", nth=2)


async def test_what_only_a_restart_can_apply_is_said(place: Place, start: Start) -> None:
    """A new port and another issue directory are named, and the old ones stay in force."""
    async with start() as daemon:
        await daemon.ready()
        place.write_workflow(file={"path": "elsewhere"}, logging={"level": "error"})
        told = await daemon.line("workflow.restart_needed")
        place.add_issue("A")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")

    assert told["settings"] == "file.path, logging.level"


async def test_a_renamed_issue_does_not_run_beside_itself(place: Place, start: Start) -> None:
    """The run under the old name is over, processes and all, before one under the new begins."""
    place.add_issue("OLD", "delay=600")

    async with start() as daemon:
        await daemon.line("turn.started", issue="OLD")
        (place.issues / "OLD.md").rename(place.issues / "NEW.md")
        await daemon.line("turn.started", issue="NEW")
        state = await daemon.state()
    told = [
        (line["event"], line["issue"])
        for line in daemon.log
        if line["event"] in ("run.started", "run.finished") and "issue" in line
    ]

    assert told[:3] == [("run.started", "OLD"), ("run.finished", "OLD"), ("run.started", "NEW")]
    assert [run["issue_identifier"] for run in state["running"]] == ["NEW"]
