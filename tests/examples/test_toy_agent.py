"""The example of an agent, by itself and through the installed program."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import trio

from sortie.agents import SessionParams
from sortie.model import RunId, TurnOutcome
from sortie.model.turns import PermissionAsked, SessionKnown, ToolEnded, ToolStarted, Usage
from sortie.transports.local import LocalTransport, become_subreaper
from tests.agents.kiro.simulated import Heard
from tests.e2e.place import Place
from tests.e2e.remote import Fleet
from tests.examples.toy_agent import ToyAgent, ToySettings
from tests.transports.ssh.sshd import requires_sshd

FOLDER = Path(__file__).parent
PROGRAM = FOLDER / "toy_agent" / "program.py"
CAREFUL = ToyAgent((sys.executable, str(PROGRAM)), ToySettings())
ALLOWED = ToyAgent((sys.executable, str(PROGRAM)), ToySettings(allow=("shell",)))
PROMPT = "{% if attempt == 0 %}toy: exit 1{% else %}toy: shell{% endif %}"
"""The first run dies in its first turn; the next one goes on."""


@pytest.fixture
def params(tmp_path: Path) -> SessionParams:
    """Give the parameters of a session on this machine."""
    become_subreaper()
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return SessionParams(
        run_id=RunId("run-toy"),
        workspace=str(workspace),
        transport=LocalTransport(),
        env={"PATH": os.defpath, "HOME": str(tmp_path), "SORTIE_RUN_ID": f"toy-{os.getpid()}"},
        read_timeout=20.0,
        stop_grace=0.5,
    )


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_question_in_mid_turn_is_answered(params: SessionParams, allowed: bool) -> None:
    """The answer follows from the settings, reaches the agent in its turn, and is told."""
    agent, heard = ALLOWED if allowed else CAREFUL, Heard()

    with trio.fail_after(60):
        async with agent.session(params) as session:
            result = await session.run_turn("toy: shell", heard)
            known = session.id

    tool: list[object] = [
        ToolStarted(id="t1", name="shell", kind="execute", locations=("made-by-toy",)),
        ToolEnded(id="t1"),
    ]
    assert result.outcome is (TurnOutcome.COMPLETED if allowed else TurnOutcome.FAILED)
    asked = PermissionAsked(question="touch made-by-toy", answer="yes" if allowed else "no")
    assert asked in heard.events
    assert [e for e in heard.events if isinstance(e, ToolStarted | ToolEnded)] == (
        tool if allowed else []
    )
    assert SessionKnown(session_id=known) in heard.events
    assert heard.used == [Usage(input_tokens=10, cost=0.01, currency="USD", cumulative=True)]
    assert (Path(params.workspace) / "made-by-toy").exists() is allowed


# Through the installed program

AGENT: dict[str, object] = {
    "kind": "toy",
    "command": [sys.executable, str(PROGRAM)],
    "max_turns": 2,
    "max_retry_backoff_ms": 100,
}


async def run_toy(place: Place) -> dict[str, list[dict[str, Any]]]:
    """Run the daemon until it is idle; return its log lines by event."""
    options = ("--exit-when-idle", "--log-level", "debug", "--log-format", "json")
    ran = await place.sortie("run", *options, within=90.0, PYTHONPATH=str(FOLDER))
    assert ran.code == 0, ran.err
    lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in map(json.loads, ran.err.splitlines()):
        lines[line["event"]].append(line)
    return lines


async def require_work_done(place: Place, host: str) -> None:
    """Run an issue to its handoff: a run that dies, and one that goes on with its session."""
    place.add_issue("TOY-1")

    lines = await run_toy(place)

    assert place.state_of("TOY-1") == "Human Review"
    told = await place.sortie("history", "--format", "json", PYTHONPATH=str(FOLDER))
    succeeded, failed = json.loads(told.out)
    assert (failed["status"], failed["error_kind"], failed["turns"]) == ("failed", "port_exit", 1)
    assert (succeeded["status"], succeeded["turns"]) == ("succeeded", 2)
    assert {(row["agent"], row["host"]) for row in (failed, succeeded)} == {("toy", host)}
    assert sum(line.get("tokens", 0) for line in lines["turn.completed"]) == 20
    assert [line["message"] for line in lines["agent.spoke"] if line.get("message")] == [
        "prompt 1",
        "prompt 2",
        "prompt 3",
    ]
    first, second = (line["session"] for line in lines["session.named"])
    assert first == second
    assert [line["answer"] for line in lines["agent.permission"]] == ["yes", "yes"]
    assert [(line["tool"], line["failed"]) for line in lines["tool.ended"]] == [
        ("shell", False)
    ] * 2
    assert sum(line["cost"] for line in lines["agent.used"]) == pytest.approx(0.02)
    assert not lines["adapter.crashed"]


async def test_the_installed_program_finds_it_and_works_with_it(place: Place) -> None:
    """It is announced by its package, and nothing of Sortie names it."""
    place.write_workflow(PROMPT, agent=AGENT, toy_agent={"allow": ["shell"]})

    await require_work_done(place, "local")


@requires_sshd
async def test_it_works_on_a_host(place: Place, fleet: Fleet) -> None:
    """The same over SSH: its stdin is written while it lives there."""
    (host,) = fleet.add("far", has_program=False)
    program = host.home / "bin" / "toy-agent"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {PROGRAM}\n")
    program.chmod(0o755)
    remote = {key: value for key, value in AGENT.items() if key != "command"}
    fleet.write_workflow(
        PROMPT,
        worker={"ssh_pass_env": []},
        agent=remote | {"command": "toy-agent"},
        toy_agent={"allow": ["shell"]},
    )

    await require_work_done(place, "far")
