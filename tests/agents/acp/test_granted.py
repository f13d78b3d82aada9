"""The server of Sortie's tools: how agents are told of it, and that no rule has to allow them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from sortie.acp.events import PermissionRequested, SessionUpdated
from sortie.agents import McpServer
from sortie.agents.acp.mcp_servers import server_arguments, session_servers
from sortie.agents.acp.permissions import grant, is_of_server
from sortie.agents.acp.reader import ReaderContext, UpdateReader
from sortie.agents.acp.settings import AcpSettings

SERVER = McpServer(name="sortie", argv=("/bin/sh", "/w/connect.sh"), env={"A": "b"})
GEMINI = {"toolCallId": "mcp_sortie_note__1", "title": "note (sortie MCP Server)"}


@pytest.mark.parametrize(
    ("call", "kind", "expected"),
    [
        (GEMINI, "other", True),
        ({"toolCallId": "t", "title": "mcp__sortie__set_status"}, "other", True),
        (GEMINI, "execute", False),
        (GEMINI | {"toolCallId": "run_shell_command__1"}, "other", False),
        (GEMINI | {"title": "note (other MCP Server)"}, "other", False),
        ({"toolCallId": "t", "title": "mcp__sortie__note; rm -rf x"}, "other", False),
        ({"toolCallId": "t", "title": "mcp__sortie2__note"}, "other", False),
        ({"toolCallId": "t", "title": "note"}, "other", False),
        ({}, "other", False),
    ],
)
def test_what_counts_as_a_tool_of_the_server(
    call: dict[str, Any], kind: str, expected: bool
) -> None:
    """Only what the agent itself names so, never what a model may have written."""
    assert is_of_server(call, kind, "sortie") is expected


def test_it_is_allowed_once_where_that_is_offered() -> None:
    """And the log says why."""
    options = [
        {"optionId": "a", "kind": "allow_always"},
        {"optionId": "b", "kind": "allow_once"},
        {"optionId": "c", "kind": "reject_once"},
    ]

    answer = grant(options)

    assert (answer.option_id, answer.allowed) == ("b", True)
    assert answer.reason == "allowed as a tool of Sortie's (allow_once)"


@pytest.mark.parametrize(
    ("agent", "announced", "title", "kind", "expected"),
    [
        ("Copilot", "sortie-note", "note", "other", True),
        ("Copilot", "other-note", "note", "other", False),
        ("Copilot", "sortie-note", "sortie-note", "other", False),  # as a model may call a task
        ("Copilot", "sortie-note", "note", "execute", False),
        ("Copilot", "note", "note", "other", False),
        ("Copilot", None, "note", "other", False),
        ("somebody", "sortie-note", "note", "other", False),
    ],
)
def test_copilot_names_the_server_where_it_announces_a_call(
    agent: str, announced: str | None, title: str, kind: str, expected: bool
) -> None:
    """Its question does not; where a title is the model's, question and announcement are alike."""
    context = ReaderContext(
        agent=agent,
        workspace="/w",
        settings=AcpSettings(),
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        redacted=lambda text: text,
        server="sortie",
    )
    reader = UpdateReader(context)
    reader.begin()
    call = {"toolCallId": "c", "kind": kind, "status": "pending"}
    if announced is not None:
        reader.take(SessionUpdated("tool_call", {"title": announced, **call}))

    options = ({"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"})
    asked = PermissionRequested(id=1, call={"title": title, **call}, options=options)
    answer, _ = reader.permit(asked)

    assert answer.option_id == ("yes" if expected else "no")


def test_a_session_is_told_of_the_server() -> None:
    """As the protocol describes one that is a program."""
    assert session_servers(None) == []
    assert session_servers(SERVER) == [
        {
            "name": "sortie",
            "command": "/bin/sh",
            "args": ["/w/connect.sh"],
            "env": [{"name": "A", "value": "b"}],
        }
    ]


def test_copilot_is_told_by_its_command_line() -> None:
    """It leaves out what a session names; no other agent's command is changed."""
    option, config = server_arguments(("/usr/bin/copilot", "--acp"), SERVER)

    assert option == "--additional-mcp-config"
    assert json.loads(config) == {
        "mcpServers": {
            "sortie": {
                "type": "local",
                "command": "/bin/sh",
                "args": ["/w/connect.sh"],
                "env": {"A": "b"},
                "tools": ["*"],
            }
        }
    }
    assert server_arguments(("/usr/bin/copilot", "--acp"), None) == ()
    assert server_arguments(("/usr/bin/gemini", "--acp"), SERVER) == ()
