"""The example of an agent, by itself and through the installed program."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from sortie.agents import SessionParams
from sortie.model import AgentError, ErrorKind, RunId, TurnOutcome
from sortie.model.turns import PermissionAsked, SessionKnown, ToolEnded, ToolStarted, Usage
from sortie.transports.local import LocalTransport, become_subreaper
from tests.agents.kiro.simulated import Heard, is_alive
from tests.e2e.place import Place
from tests.e2e.remote import Fleet
from tests.examples.toy_agent import KEY, ToyAgent, ToySettings
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


async def test_a_session_goes_on_by_its_id(params: SessionParams) -> None:
    """One process serves all turns of a session, and the next session resumes its conversation."""
    first, second, third = Heard(), Heard(), Heard()

    with trio.fail_after(60):
        async with CAREFUL.session(params) as session:
            await session.run_turn("one", first)
            await session.run_turn("two", second)
        again = replace(params, resume_session_id=session.id)
        async with CAREFUL.session(again) as session:
            await session.run_turn("three", third)

    assert first.pid == second.pid != third.pid
    assert [heard.messages for heard in (first, second, third)] == [
        ["prompt 1"],
        ["prompt 2"],
        ["prompt 3"],
    ]


async def test_an_agent_that_is_deaf_is_ended(params: SessionParams) -> None:
    """A turn that is cancelled and does not end within the grace time takes its process along."""
    heard = Heard()

    with trio.fail_after(60):
        async with CAREFUL.session(params) as session:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.run_turn, "toy: deaf", heard)
                await heard.spoke.wait()
                nursery.cancel_scope.cancel()
            alive = is_alive(heard.pid)

    assert not alive


async def test_an_agent_that_does_not_answer_is_refused(params: SessionParams) -> None:
    """The greeting has a limit, after which the session is a ``response_timeout``."""
    agent = ToyAgent(("/bin/sleep", "600"), ToySettings())

    with trio.fail_after(60), pytest.raises(ExceptionGroup) as caught:
        async with agent.session(replace(params, read_timeout=0.3)):
            pass

    (error,) = caught.value.exceptions
    assert isinstance(error, AgentError)
    assert (error.kind, error.timed_out) == (ErrorKind.RESPONSE_TIMEOUT, True)


async def test_its_key_is_shown_to_nobody(params: SessionParams) -> None:
    """Neither a line nor a warning holds it."""
    heard = Heard()
    env = {**params.env, KEY: "sk-toy-secret"}

    with trio.fail_after(60):
        async with CAREFUL.session(replace(params, env=env)) as session:
            await session.run_turn("toy: secret", heard)
            result = await session.run_turn("toy: fail", heard)

    assert "key ***" in heard.messages
    assert "key ***" in result.warnings
    assert "sk-toy" not in repr((heard.events, result))


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
