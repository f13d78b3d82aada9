"""Agents by name: where their files are, what may stand in them, and what they change."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.kiro.simulator.conftest import Simulator

SERVER = {"command": "no-such-server", "args": ["-y"], "env": {"TOKEN": "t"}}


def write_agent(told: Any, name: str = "ops", folder: str = ".kiro") -> None:
    """Write an agent's file."""
    path = Path(folder) / "agents" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(told if isinstance(told, str) else json.dumps(told))


def test_an_agent_is_found_in_both_places_and_by_both_names(simulator: Simulator) -> None:
    """In the directory or the user's folder; by its file or by what it calls itself."""
    home = f"{simulator.environment['HOME']}/.kiro"
    write_agent({"name": "ops"})
    write_agent({}, "mine", home)
    write_agent({"name": "called so"}, "file", home)
    write_agent("no JSON", "aaa", home)
    Path(".kiro/ops.json").write_text("{}")

    statuses = {
        name: simulator.chat("Hi", "--agent", name).status
        for name in ("ops", "mine", "called so", "file", "kiro_default", "nobody", "../ops")
    }

    assert [name for name, status in statuses.items() if status] == ["nobody", "../ops"]
    assert statuses["nobody"] == 4


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("{", "cannot be read"),
        ([], "holds no JSON object"),
        ({"mcp_servers": {}}, "mcp_servers: there is no such field"),
        ({"model": 4}, "model: is no text"),
        ({"tools": "read"}, "tools: is no list of texts"),
        ({"includeMcpJson": "yes"}, "includeMcpJson: is neither true nor false"),
        ({"toolsSettings": []}, "toolsSettings: is no object"),
        ({"mcpServers": {"files": 1}}, "mcpServers: files: is no object"),
        ({"mcpServers": {"files": {}}}, "files: has neither a command nor a url"),
        ({"mcpServers": {"f": {"command": "c", "args": "a"}}}, "f: args is no list of texts"),
        ({"mcpServers": {"f": {"command": "c", "env": {"A": 1}}}}, "f: env is no object of texts"),
        ({"prompt": "file://missing.md"}, "missing.md cannot be read"),
        ({"hooks": {"onStart": []}}, "hooks: onStart: there is no such event"),
        ({"hooks": {"stop": {}}}, "stop: is no list"),
        ({"hooks": {"stop": [{}]}}, "stop: a hook has no command"),
        ({"hooks": {"stop": [{"command": "x", "timeout_ms": 0}]}}, "timeout_ms is no number"),
        ({"hooks": {"stop": [{"command": "x", "max_output_size": "1"}]}}, "is no number of bytes"),
        ({"hooks": {"preToolUse": [{"command": "x", "matcher": 1}]}}, "matcher is no text"),
    ],
)
def test_a_file_that_is_no_good_is_no_agent(simulator: Simulator, told: Any, reason: str) -> None:
    """A turn with it does nothing, and says which file and what is wrong."""
    write_agent(told)

    ran = simulator.chat("Hi", "--agent", "ops")

    assert (ran.status, ran.stdout) == (4, "")
    assert reason in ran.stderr
    assert "ops.json" in ran.stderr
    assert os.listdir() == [".kiro"]


@pytest.mark.parametrize(
    ("tools", "writes"),
    [
        (None, False),
        ([], False),
        (["read", "shell", "@git"], False),
        (["*"], True),
        (["@builtin"], True),
        (["write"], True),
        (["fs_*"], True),
    ],
)
def test_an_agent_uses_the_tools_that_it_has(
    simulator: Simulator, tools: list[str] | None, writes: bool
) -> None:
    """One without the tool that writes leaves no note and says so."""
    write_agent({} if tools is None else {"tools": tools})

    ran = simulator.chat("Hi", "--agent", "ops")

    assert Path("SORTIE_DEMO.md").exists() == writes
    assert ("I added a note" in ran.stdout, "I changed nothing" in ran.stdout) == (
        writes,
        not writes,
    )


def test_what_an_agent_says_reaches_the_simulator(simulator: Simulator, tmp_path: Path) -> None:
    """Its prompt, also from a file, tools, servers and model are told in the log; no secret is."""
    log = tmp_path / "log"
    simulator.environment |= {"KIRO_SIM_LOG": str(log), "KIRO_SIM_STORE": "v2"}
    server = {"files": SERVER, "web": {"url": "https://example.com/mcp"}}
    write_agent({"prompt": "file://ops.md", "tools": ["*"], "mcpServers": server, "model": "m-2"})
    Path(".kiro/agents/ops.md").write_text("Be brief.")

    simulator.chat("Hi", "--agent", "ops")

    (told,) = [
        line
        for text in log.read_text().splitlines()
        if (line := json.loads(text))["event"] == "agent"
    ]
    session = json.loads(next(Path(simulator.environment["HOME"]).rglob("*.json")).read_text())
    (turn,) = session["session_state"]["conversation_metadata"]["user_turn_metadatas"]
    assert told["agent"] == {
        "name": "ops",
        "prompt": "Be brief.",
        "model": "m-2",
        "tools": ["*"],
        "mcp_servers": ["files", "web"],
        "hooks": [],
    }
    assert (session["session_state"]["agent_name"], turn["model"]) == ("ops", "m-2")


def test_a_required_server_that_is_missing_is_status_3(simulator: Simulator) -> None:
    """Without that it is no concern: under an API key Kiro starts no server."""
    write_agent({"tools": ["*"], "mcpServers": {"files": SERVER}})

    required = simulator.chat("Hi", "--agent", "ops", "--require-mcp-startup")
    other = simulator.chat("Hi", "--agent", "ops")

    assert (required.status, required.stdout, other.status) == (3, "", 0)
    assert "the required MCP server files did not start" in required.stderr
