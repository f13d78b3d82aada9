"""Every row of the outcome table, through real processes on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from sortie.agents.kiro.settings import KiroSettings
from sortie.model import AgentError, ErrorKind, TurnOutcome, TurnResult
from sortie.model.turns import Usage
from sortie.transports.local import LocalTransport, become_subreaper
from tests.agents.kiro.simulated import Heard, Rig, visit

LIMIT = 60  # seconds; a busy machine is slow, a hang is endless


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    become_subreaper()  # as the daemon does; without it orphans cannot be followed
    return Rig(tmp_path, LocalTransport())


def ending(result: TurnResult) -> tuple[str, str | None]:
    return result.outcome, result.error_kind


async def test_success(rig: Rig) -> None:
    """Trailer and exit 0 complete the turn, with its credits and its unterminated last line."""
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn("Hello\nsim: credits=0.25")

    assert result == TurnResult(outcome=TurnOutcome.COMPLETED)
    assert heard.spent == [Usage(credits=0.25)]
    assert heard.lines == 2
    assert heard.messages[-1] == "I added a note to `SORTIE_DEMO.md`."
    assert "Hello" in (rig.workspace / "SORTIE_DEMO.md").read_text()


@pytest.mark.parametrize("tools", ["old", "new"])
async def test_success_in_every_style(rig: Rig, tools: str) -> None:
    """How a version prints tools makes no difference."""
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn(f"Go\nsim: tools={tools} delay=0.3")

    assert result == TurnResult(outcome=TurnOutcome.COMPLETED)
    assert heard.spent == [Usage(credits=0.05)]


@pytest.mark.parametrize(
    ("directives", "kind"),
    [
        ("auth_failure=1", "response_error"),
        ("no_trailer=1", "turn_failed"),
        ("exit=1", "port_exit"),
        ("signal=SEGV", "port_exit"),
    ],
)
async def test_failures(rig: Rig, directives: str, kind: str) -> None:
    """Each failing row gives its kind, and the warnings of stderr."""
    with trio.fail_after(LIMIT):
        result, _ = await rig.turn(f"sim: {directives}")

    assert ending(result) == (TurnOutcome.FAILED, ErrorKind(kind))
    assert "Failed to retrieve MCP settings; MCP functionality disabled" in result.warnings


async def test_an_agent_that_does_not_read_stdin(rig: Rig) -> None:
    """A program that exits without reading a long prompt is no crash of the adapter."""
    rig.script("#!/bin/sh\n[ $1 = whoami ] && echo Authenticated with API key\nexit 0\n")

    with trio.fail_after(LIMIT):
        result, _ = await rig.turn("x" * 1_000_000)

    assert ending(result) == (TurnOutcome.FAILED, ErrorKind.TURN_FAILED)


@pytest.mark.parametrize("key", [None, "", "invalid", "bad-key"])
async def test_a_missing_or_bad_key(rig: Rig, key: str | None) -> None:
    """No session starts, so chat never waits for a device login; no key in the error."""
    del rig.environment["KIRO_API_KEY"]
    if key is not None:
        rig.environment["KIRO_API_KEY"] = key

    with trio.fail_after(LIMIT), pytest.raises(AgentError, match="KIRO_API_KEY is") as caught:
        await visit(rig.agent(), rig.params())

    assert caught.value.kind is ErrorKind.RESPONSE_ERROR
    assert "bad-key" not in str(caught.value)


async def test_a_burst_of_sessions_asks_once(rig: Rig) -> None:
    """Fifty real sessions at once run whoami once."""
    agent = rig.agent()

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(visit, agent, rig.params())

    events = [json.loads(line)["event"] for line in rig.log.read_text().splitlines()]
    assert events == ["start", "stop"]


async def test_a_named_agent_that_does_not_exist(rig: Rig) -> None:
    """kiro.agent reaches the program, whose exit 4 is explained."""
    agent = rig.agent(KiroSettings(agent="nobody"))

    with trio.fail_after(LIMIT):
        async with agent.session(rig.params()) as session:
            result = await session.run_turn("Hello", Heard())

    assert ending(result) == (TurnOutcome.FAILED, ErrorKind.PORT_EXIT)
    assert "the agent named by kiro.agent does not exist" in (result.message or "")
    assert "error: no agent with name nobody found" in result.warnings
