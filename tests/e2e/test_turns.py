"""Several turns, several runs, and what survives a restart."""

from __future__ import annotations

import signal

from tests.e2e.conftest import Start
from tests.e2e.place import Place


async def test_turns_of_a_run_share_a_conversation(place: Place, start: Start) -> None:
    """While the issue stays active its turns resume what the first one began, up to the limit."""
    place.write_workflow(agent={"command": "sortie-kiro-sim", "max_turns": 3})
    place.add_issue("A", "credits=0.25")

    async with start() as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        metrics = await daemon.metrics()
    [row] = await place.history()

    assert (row["status"], row["turns"], row["credits"]) == ("succeeded", 3, 0.75)
    assert [agent["resume"] for agent in place.agents()] == [False, True, True]
    assert {agent["run_id"] for agent in place.agents()} == {row["run_id"]}
    assert {agent["cwd"] for agent in place.agents()} == {row["workspace"]}
    assert metrics.total("sortie_turns_total", outcome="completed") == 3


async def test_what_an_agent_did_is_shown_while_it_runs_and_after_a_crash(
    place: Place, start: Start
) -> None:
    """Kiro's own record of the turn tells it; the daemon's is on disk before the next turn."""
    place.write_workflow(agent={"command": "sortie-kiro-sim", "max_turns": 2})

    async with start() as daemon:
        await daemon.line("http.listening")
        place.add_issue("A", "delay=1 write=src/a.py")
        await daemon.line("turn.started", issue="A", nth=2)
        [live] = (await daemon.state())["running"]
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    [row] = await place.history()
    async with start() as daemon:  # ends the agent of the second turn
        await daemon.line("run.started", issue="A")
    closed, _ = await place.history()

    did = {
        "model": "auto",
        "files_modified": ["SORTIE_DEMO.md", "src/a.py"],
        "files_omitted": False,
        "tool_uses": {"fs_write": 2},
    }
    assert {name: live[name] for name in did} == did
    assert {name: row[name] for name in did} == did
    assert {name: closed[name] for name in did} == did


async def test_an_agent_that_finishes_its_issue_gets_no_further_turn(
    place: Place, start: Start
) -> None:
    """An issue that leaves its active states during a turn ends the run, and nothing is handed."""
    place.write_workflow(agent={"command": "sortie-kiro-sim", "max_turns": 3})
    path = place.issues / "A.md"
    place.add_issue("A", f'set_state="{path} Backlog"')

    async with start("--exit-when-idle") as daemon:
        code = await daemon.exit_code()

    assert code == 0
    assert len(place.agents()) == 1
    assert place.state_of("A") == "Backlog"
    assert daemon.lines("issue.moved", lifecycle="handoff") == []


async def test_a_spent_budget_holds_the_issue_over_a_restart(place: Place, start: Start) -> None:
    """After its last session an issue is held until a person changes it, then has a new budget."""
    place.write_workflow(
        tracker={"handoff_state": None},
        agent={"command": "sortie-kiro-sim", "max_turns": 1, "max_sessions": 2},
    )
    place.add_issue("A")

    async with start() as daemon:
        await daemon.line("issue.held", issue="A", reason="session_budget_exhausted")
    async with start() as daemon:
        await daemon.ready()
        held = (await daemon.state())["held"]
        place.add_issue("A", title="Another title")
        await daemon.line("hold.ended", issue="A")
        await daemon.line("issue.held", issue="A", reason="session_budget_exhausted")
    rows = await place.history()

    assert [(h["issue_identifier"], h["reason"]) for h in held] == [
        ("A", "session_budget_exhausted")
    ]
    assert [(row["attempt"], row["status"]) for row in rows] == [(0, "succeeded")] * 4
