"""Permissions of Codex's about which people are asked: what is one and the same, and the turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sortie.agents.codex.leave import leave_for
from sortie.agents.codex.settings import CodexSettings
from sortie.agents.permissions import PermissionRules
from sortie.codex.approvals import COMMAND, FILE_CHANGE, MCP, PERMISSIONS
from sortie.model.asked_permissions import AskedPermissions
from sortie.model.questions import PERMISSION_OPTIONS, Question
from sortie.model.turns import PermissionAsked
from sortie.transports.local import become_subreaper
from tests.agents.codex.staged import CodexStage

ASKS = PermissionRules(inside={"default": "ask"}, outside={"default": "ask", "delete": "deny"})
DEPLOY = {"command": "make deploy", "cwd": "/w", "itemId": "i1", "reason": "it is needed"}


def named(method: str, params: dict[str, Any], item: dict[str, Any] | None = None) -> str | None:
    """Return what identifies what is asked for."""
    return leave_for(method, params, item, ASKS, "/w").permission


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({"itemId": "i2", "turnId": "t2", "startedAtMs": 5, "reason": "the issue says so"}, True),
        ({"command": "make deploy; rm -rf /"}, False),
        ({"cwd": "/w/prod"}, False),
        ({"additionalPermissions": {"network": {"enabled": True}}}, False),
    ],
)
def test_the_same_command(other: dict[str, Any], same: bool) -> None:
    """A command is itself in its own directory, whatever is said about it; more is another."""
    assert (named(COMMAND, DEPLOY) == named(COMMAND, {**DEPLOY, **other})) is same


def test_the_same_of_other_requests() -> None:
    """Files by their paths, permissions and tools by all that they are given."""

    def change(path: str, diff: str = "x", kind: str = "add") -> dict[str, Any]:
        return {"changes": [{"path": path, "kind": {"type": kind}, "diff": diff}]}

    files = [named(FILE_CHANGE, {}, change(*given)) for given in (("a",), ("a", "y"), ("b",))]
    hosts = [
        named(COMMAND, DEPLOY | {"networkApprovalContext": {"host": host, "protocol": "https"}})
        for host in ("a.example", "b.example")
    ]
    more = [
        named(PERMISSIONS, {"permissions": {"fileSystem": {"write": [path]}}})
        for path in ("/w/a", "/w/b")
    ]
    tools = [
        named(MCP, {"_meta": {"codex_approval_kind": "mcp_tool_call", "tool_params": given}})
        for given in ({"a": 1}, {"a": 2})
    ]

    assert files[0] == files[1] != files[2]
    for first, second in (hosts, more, tools):
        assert None not in (first, second)
        assert first != second
    assert named(FILE_CHANGE, {}, change("/x", kind="delete")) is None  # a part of it is denied


def test_input_to_a_command_is_not_asked_about() -> None:
    """The request does not hold it, so that people could not see what they allow."""
    leave = leave_for(COMMAND, {**DEPLOY, "kind": "writeStdin"}, None, ASKS, "/w")

    assert (leave.allowed, leave.permission) == (False, None)
    assert leave.reason.startswith("denied by permissions.inside for execute: people are asked")


async def test_the_turn_ends_and_goes_on(tmp_path: Path) -> None:
    """With a real process: refused, ended, and granted one time in the next run."""
    become_subreaper()
    stage, asked = CodexStage(tmp_path), list[Question]()
    settings, made = CodexSettings(permissions=ASKS), stage.workspace / "made"
    prompt = f"codex: command {stage.workspace} echo x >> made"

    def allowing(once: str | None, denied: str | None = None) -> None:
        people = AskedPermissions(asked.append, (), once, denied)
        stage.params = replace(stage.params, permissions=people)

    allowing(None)
    refused, heard = await stage.turn(f"{prompt}\n{prompt}", settings=settings)
    assert (refused.outcome.value, made.exists()) == ("completed", False)
    (question,) = asked
    assert question.options == PERMISSION_OPTIONS
    assert "echo x >> made" in question.text
    assert str(stage.workspace) in question.text
    told = heard.of(PermissionAsked)[0].answer
    assert told == "denied by permissions.inside for execute, until a person allows it"

    allowing(question.permission)
    _, heard = await stage.turn(prompt, settings=settings)
    assert made.read_text() == "x\n"
    (answer,) = (event.answer for event in heard.of(PermissionAsked))
    assert answer == "allowed by permissions.inside for execute, by a person"

    allowing(None, denied=question.permission)
    _, heard = await stage.turn(f"{prompt}\ncodex: say on", settings=settings)
    assert (made.read_text(), len(asked)) == ("x\n", 1)
