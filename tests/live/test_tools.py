"""Real agents that use the tools of Sortie, behind a daemon: on this machine, on a host, in walls.

Their models are scripted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.e2e.conftest import Start
from tests.e2e.place import PROMPT, Place
from tests.e2e.remote import Fleet
from tests.live.acp_agents import PROGRAMS
from tests.live.claude import HERE, Claude
from tests.live.codex import CODEX_KEY, VERSIONS, codex_program
from tests.live.model_answers import Answer, ToolUse
from tests.live.model_server import ModelServer, model_server
from tests.transports.ssh.sshd import requires_sshd

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]

DONE = Answer(text="All is done.")

CALLS = {
    "issue": {},
    "note": {"text": "I begin with the tests"},
    "comment": {"text": "It works."},
    "set_status": {"status": "needs_review", "reason": "look"},
}

COPILOT = {
    "mcpServers": {
        "sortie": {
            "type": "local",
            "command": "/bin/sh",
            "args": [".sortie/tools/connect.sh"],
            "tools": ["*"],
        }
    }
}
"""How Copilot is told of the tools: a path that is relative to the workspace, in which it runs."""


def uses(name: str, arguments: Mapping[str, str]) -> Answer:
    """Return the model's wish to use a tool."""
    return Answer(tools=(ToolUse(name=name, input=arguments),))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as models:
        yield models


@pytest.mark.parametrize("where", ["local", pytest.param("ssh", marks=requires_sshd)])
async def test_claude_code_has_the_tools(
    where: str, place: Place, server: ModelServer, start: Start, request: pytest.FixtureRequest
) -> None:
    """It is told of them without any setting of its own, may use them without being asked, and its
    word ends the run."""
    fleet: Fleet | None = request.getfixturevalue("fleet") if where == "ssh" else None
    claude = Claude.at(place, server, fleet)
    claude.workflow(agent={"max_turns": 3}, blocks={"tools": "all"}, permission_mode="dontAsk")
    place.add_issue("A")
    script = claude.script(
        *(uses(f"mcp__sortie__{name}", arguments) for name, arguments in CALLS.items()),
        DONE,
    )

    async with start(**claude.environ()) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        called = daemon.lines("tool.called")
        noted = daemon.lines("agent.noted")
        lost = daemon.lines("tools.lost") + daemon.lines("tools.client_lost")
    answers = results_in(script.requests[-1].body)

    assert [(line["tool"], line["result"]) for line in called] == [
        ("issue", "ok"), ("note", "ok"), ("comment", "ok"), ("set_status", "ok")
    ]  # fmt: skip
    assert [line["text"] for line in noted] == ["I begin with the tests"]
    assert (lost, len(answers)) == ([], 4)
    assert '"identifier": "A"' in answers[0]
    assert "> It works." in (place.issues / "A.md").read_text()
    assert "token" not in {path.name for path in claude.workspace("A").rglob("*")}


@pytest.mark.parametrize(
    ("name", "prefix", "more", "acp"),
    [
        ("opencode", "sortie_", (), {}),
        ("gemini", "mcp_sortie_", (), {}),
        (
            "copilot",
            "sortie-",
            ("--additional-mcp-config", json.dumps(COPILOT)),
            {"permissions": {"inside": {"other": "allow"}}},
        ),
    ],
)
@pytest.mark.parametrize("where", ["local", pytest.param("ssh", marks=requires_sshd)])
async def test_agents_that_speak_acp_have_the_tools(
    name: str,
    prefix: str,
    more: tuple[str, ...],
    acp: Mapping[str, Any],
    where: str,
    place: Place,
    server: ModelServer,
    start: Start,
    request: pytest.FixtureRequest,
) -> None:
    """They connect to the server that their session is told of, and no rule needs to allow its
    tools; Copilot, which takes none from there, has it on its command line and in its rules."""
    program, url = PROGRAMS[name], server.url(HERE)
    home, fleet = place.home, None
    if where == "ssh":
        fleet = request.getfixturevalue("fleet")
        (host,) = fleet.add("far", has_program=False)
        home = host.home
    program.configure(home, url)
    environ = dict(program.environ(url))
    agent = {"kind": "acp", "command": [*program.command(), *more], "max_turns": 3}
    blocks: dict[str, Any] = {
        "agent": agent | {"read_timeout_ms": 60_000},
        "acp": {**program.settings, **acp},
        "tools": "all",
        "logging": {"level": "debug"},
    }
    if fleet is None:
        place.write_workflow(**blocks)
    else:
        fleet.write_workflow(PROMPT, worker={"ssh_pass_env": sorted(environ)}, **blocks)
    place.add_issue("A")
    script = server.script(HERE, *(uses(f"{prefix}{n}", a) for n, a in CALLS.items()), DONE)

    async with start(**environ) as daemon:
        await daemon.line("issue.moved", within=240, issue="A", lifecycle="handoff")
        called = daemon.lines("tool.called")
        lost = daemon.lines("tools.lost") + daemon.lines("tools.client_lost")

    assert [(line["tool"], line["result"]) for line in called] == [(n, "ok") for n in CALLS]
    assert lost == []
    assert "> It works." in (place.issues / "A.md").read_text()
    assert len(script.requests) >= len(CALLS)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("where", ["local", pytest.param("ssh", marks=requires_sshd)])
async def test_codex_has_the_tools(
    where: str,
    version: str,
    place: Place,
    server: ModelServer,
    start: Start,
    request: pytest.FixtureRequest,
) -> None:
    """No rule needs to allow them, and its sandbox does not keep it from them."""
    program = codex_program(version)
    blocks: dict[str, Any] = {
        "agent": {"kind": "codex", "command": [str(program), "app-server"], "max_turns": 3},
        "codex": {"model": "gpt-5"},
        "tools": "all",
        "logging": {"level": "debug"},
    }
    if where == "ssh":
        fleet = request.getfixturevalue("fleet")
        fleet.add("far", has_program=False)
        fleet.write_workflow(PROMPT, **blocks)
    else:
        place.write_workflow(**blocks)
    place.add_issue("A")
    calls = (ToolUse(name=n, namespace="mcp__sortie", input=a) for n, a in CALLS.items())
    server.script(HERE, *(Answer(tools=(call,)) for call in calls), DONE)
    environ = {"OPENAI_API_KEY": CODEX_KEY, "OPENAI_BASE_URL": f"{server.url(HERE)}/v1"}

    async with start(**environ) as daemon:
        await daemon.line("issue.moved", within=240, issue="A", lifecycle="handoff")
        called = daemon.lines("tool.called")
        asked = daemon.lines("agent.permission")
        lost = daemon.lines("tools.lost") + daemon.lines("tools.client_lost")

    assert [(line["tool"], line["result"]) for line in called] == [(n, "ok") for n in CALLS]
    assert (asked, lost) == ([], [])
    assert "> It works." in (place.issues / "A.md").read_text()


def results_in(body: Any) -> list[str]:
    """Return what tools have answered, as the model was told it."""
    return [
        json.dumps(block["content"])
        if not isinstance(block["content"], list)
        else block["content"][0]["text"]
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
