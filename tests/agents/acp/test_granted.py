"""Which permissions are given without a rule: those for tools of Sortie's own server."""

from __future__ import annotations

from typing import Any

import pytest

from sortie.agents.acp.permissions import grant, is_of_server

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
