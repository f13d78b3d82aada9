"""What options become: arguments, an agent's file, or an error that says why not."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from sortie.kiro import KiroAgentOptions, OptionError, ResultMessage, query_sync
from sortie.kiro.client.agent_file import AgentFile, agent_content, agents_folder
from sortie.kiro.client.options import check_options
from tests.kiro.client.rig import Rig

# Tells its arguments, and the agent's file with its mode, and takes part in no conversation.
_TELLING = """#!{python}
import json, os, pathlib, sys
args = sys.argv[1:]
told = {{"args": args}}
if "--agent" in args:
    path = pathlib.Path({agents!r}, args[args.index("--agent") + 1] + ".json")
    told["agent"] = json.loads(path.read_text())
    told["mode"] = path.stat().st_mode & 0o777
pathlib.Path({told!r}).write_text(json.dumps(told))
sys.stderr.write(" \u25b8 Credits: 0.1 \u2022 Time: 1s\\n")
"""
FIRST = ["chat", "--no-interactive", "--wrap", "never"]


@pytest.fixture
def told(rig: Rig, tmp_path: Path) -> Path:
    """Return where kiro-cli tells how it was called."""
    path = tmp_path / "told.json"
    rig.script(
        _TELLING.format(
            python=sys.executable, agents=str(rig.home / ".kiro" / "agents"), told=str(path)
        )
    )
    return path


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({}, ["--trust-tools="]),
        ({"model": "m-1", "verbose": 3}, ["-vvv", "--model", "m-1", "--trust-tools="]),
        (
            {"allowed_tools": ["Bash", "Read", "Write", "Edit", "@git/log"]},
            ["--trust-tools=shell,read,write,@git/log"],
        ),
        ({"trust_all_tools": True, "allowed_tools": []}, ["--trust-all-tools"]),
    ],
)
def test_options_are_arguments(
    rig: Rig, told: Path, options: dict[str, Any], arguments: list[str]
) -> None:
    """Each has its place; the prompt stands behind them."""
    rig.ask("sync", "- go", **options)

    assert json.loads(told.read_text()) == {"args": [*FIRST, *arguments, "--", "- go"]}


def test_what_only_an_agents_file_can_tell_is_told_there(rig: Rig, told: Path) -> None:
    """The file is the user's alone, has all tools, and is gone when the turn is."""
    servers = {"git": {"command": "git-mcp", "env": {"TOKEN": "secret"}}}

    messages = rig.ask("sync", "go", system_prompt="Be brief", mcp_servers=servers)

    seen = json.loads(told.read_text())
    name = seen["args"][5]
    assert seen["args"] == [
        *FIRST,
        *("--agent", name, "--require-mcp-startup", "--trust-tools=", "go"),
    ]
    assert seen["mode"] == 0o600
    assert seen["agent"] == {
        "name": name,
        "description": "Options of one turn that a program asked for; goes away with it.",
        "tools": ["*"],
        "prompt": "Be brief",
        "mcpServers": servers,
    }
    assert isinstance(messages[-1], ResultMessage)
    assert rig.agent_files() == []


def test_a_system_prompt_is_no_address() -> None:
    """Kiro reads ``file://`` as a file; what was meant as text stays text."""
    assert agent_content("file:///etc/passwd", None)["prompt"] == "\nfile:///etc/passwd"


@pytest.mark.parametrize(
    ("options", "option", "message"),
    [
        ({"temperature": 0.0}, "temperature", "has no such setting"),
        ({"max_turns": 3}, "max_turns", "set a timeout instead"),
        ({"verbose": -1}, "verbose", "not one of 0 to 3"),
        ({"timeout": float("nan")}, "timeout", "no time in seconds"),
        ({"stop_grace": -1.0}, "stop_grace", "no time in seconds"),
        ({"model": "-x"}, "model", "cannot be told"),
        ({"resume_session": " "}, "resume_session", "cannot be told"),
        ({"allowed_tools": "read"}, "allowed_tools", "no list of names"),
        ({"allowed_tools": ["a,b"]}, "allowed_tools", "no tool's name"),
        (
            {"allowed_tools": ["read"], "trust_all_tools": True},
            "allowed_tools",
            "contradict each other",
        ),
        ({"mcp_servers": {"x": {"args": []}}}, "mcp_servers", "needs a command, or a url"),
        ({"mcp_servers": {"x": "npx"}}, "mcp_servers", "needs a command, or a url"),
        ({"mcp_servers": {"": {"url": "u"}}}, "mcp_servers", "needs a command, or a url"),
        ({"mcp_servers": {"x": {"command": "c", "env": "A=B"}}}, "mcp_servers", "env"),
        ({"mcp_servers": {"x": {"command": "c", "f": len}}}, "mcp_servers", "as JSON"),
        ({"env": {"A=B": "c"}}, "env", "name of a variable"),
        ({"env": {"A": "\0"}}, "env", "has NUL"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], option: str, message: str) -> None:
    """The error has the option and the reason; it is a ValueError too."""
    with pytest.raises(OptionError, match=message) as caught:
        check_options(KiroAgentOptions(**options))

    assert caught.value.option == option
    assert str(caught.value).startswith(option)
    assert isinstance(caught.value, ValueError)


def test_secrets_do_not_stand_in_a_repr() -> None:
    """Options can be logged."""
    options = KiroAgentOptions(
        env={"KIRO_API_KEY": "sk-1"}, mcp_servers={"x": {"command": "c", "env": {"T": "sk-2"}}}
    )

    assert "sk-" not in repr(options)


def test_a_directory_that_is_none_is_refused(rig: Rig) -> None:
    """It is the option that is wrong, not the program."""
    with pytest.raises(OptionError, match=r"cwd: '/no/where' is no directory"):
        query_sync(prompt="x", options=rig.options(cwd="/no/where"))


def test_an_abandoned_agents_file_is_removed(tmp_path: Path) -> None:
    """What a killed program has left goes; what is in use, and what is a user's, stays."""
    environment = {"KIRO_HOME": str(tmp_path)}
    folder = Path(agents_folder(environment))
    first = AgentFile(environment, {})
    abandoned, users = folder / "sortie-client-dead.json", folder / "mine.json"
    abandoned.write_text("{}")
    users.write_text("{}")

    second = AgentFile(environment, {})

    assert not abandoned.exists()
    assert sorted(os.listdir(folder)) == sorted(
        ["mine.json", f"{first.name}.json", f"{second.name}.json"]
    )
    for file in (first, second, second):
        file.remove()
    assert os.listdir(folder) == ["mine.json"]
