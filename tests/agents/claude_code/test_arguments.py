"""The command line of a turn: each setting, the prompt, and where either goes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sortie.agents import McpServer
from sortie.agents.claude_code.agent import turn
from sortie.agents.claude_code.settings import ClaudeCodeSettings, ReadingSettings
from sortie.model.invocation import PROMPT_ARGUMENT_LIMIT, Invocation
from tests.agents.claude_code.reading import ID

ALWAYS = ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")
BYPASS = ("--permission-mode", "bypassPermissions")


def invocation(prompt: str = "go", *, resume: bool = False, **settings: Any) -> Invocation:
    block = ClaudeCodeSettings(**{"permission_mode": "bypassPermissions"} | settings)
    return turn(block, prompt, session_id=ID, resume=resume)


def test_a_conversation_begins_under_an_id_and_goes_on_by_it() -> None:
    """The first turn names its id, each other one resumes it; the prompt stands alone at the
    end, where no option can take it."""
    assert invocation().arguments == (*ALWAYS, "--session-id", ID, *BYPASS, "--", "go")
    assert invocation(resume=True).arguments == (*ALWAYS, "--resume", ID, *BYPASS, "--", "go")


@pytest.mark.parametrize(
    ("key", "value", "flags"),
    [
        ("model", "claude-sonnet-4-5", ("--model", "claude-sonnet-4-5")),
        ("fallback_model", "haiku", ("--fallback-model", "haiku")),
        ("max_turns", 50, ("--max-turns", "50")),
        ("max_budget_usd", 5, ("--max-budget-usd", "5")),
        ("max_budget_usd", 0.25, ("--max-budget-usd", "0.25")),
        ("effort", "high", ("--effort", "high")),
        ("allowed_tools", "Edit,Bash(git *)", ("--allowedTools", "Edit,Bash(git *)")),
        ("disallowed_tools", "WebFetch", ("--disallowedTools", "WebFetch")),
        ("system_prompt", "- Be\n- brief", ("--append-system-prompt", "- Be\n- brief")),
        ("mcp_config", "/etc/mcp.json", ("--mcp-config", "/etc/mcp.json")),
        ("session_persistence", False, ("--no-session-persistence",)),
        ("session_persistence", True, ()),
    ],
)
def test_each_setting_is_a_flag(key: str, value: Any, flags: tuple[str, ...]) -> None:
    """What is set is passed on, what is not is left to Claude Code."""
    given = invocation(**{key: value}).arguments

    assert given == (*ALWAYS, "--session-id", ID, *BYPASS, *flags, "--", "go")


def test_without_a_mode_everything_is_approved_by_the_old_flag() -> None:
    """One of both is always there."""
    given = invocation(permission_mode=None).arguments

    assert given == (*ALWAYS, "--session-id", ID, "--dangerously-skip-permissions", "--", "go")


def test_a_long_prompt_goes_through_stdin() -> None:
    """Linux refuses an argument of 128 KiB; bytes count, not characters."""
    prompt = "ü" * (PROMPT_ARGUMENT_LIMIT // 2)

    at_limit, above = invocation(prompt), invocation(prompt + "!")

    assert (at_limit.arguments[-1], at_limit.stdin) == (prompt, None)
    assert (above.arguments[-1], above.stdin) == (BYPASS[-1], f"{prompt}!".encode())


@pytest.mark.parametrize(
    ("prompt", "given"),
    [
        ("/cost is too high", "\n/cost is too high"),
        (" /cost", " /cost"),
        ("-v", "-v"),
        ("a\0b\ud800c", "a\ufffdb\ufffdc"),
    ],
)
def test_what_a_prompt_may_be(prompt: str, given: str) -> None:
    """A slash begins no command, a dash no option, and what no argument can hold is replaced."""
    assert invocation(prompt).arguments[-2:] == ("--", given)


def test_a_server_of_the_run_stands_beside_those_of_the_settings() -> None:
    """All its tools are allowed besides those that the settings allow, and no option takes the
    values of another."""
    server = McpServer(name="sortie", argv=("/bin/sh", "/w/connect.sh"), env={"A": "b"})
    block = ClaudeCodeSettings(
        permission_mode="bypassPermissions", allowed_tools="Edit,Bash", mcp_config="/etc/mcp.json"
    )
    told = {"type": "stdio", "command": "/bin/sh", "args": ["/w/connect.sh"], "env": {"A": "b"}}
    config = json.dumps({"mcpServers": {"sortie": told}})

    both = turn(block, "go", session_id=ID, resume=False, server=server).arguments
    alone = turn(ReadingSettings(), "go", session_id=ID, resume=False, server=server).arguments

    assert both[-8:-2] == (
        "--allowedTools", "Edit,Bash", "mcp__sortie", "--mcp-config", "/etc/mcp.json", config
    )  # fmt: skip
    assert alone[alone.index("--allowedTools") :][:4] == (
        "--allowedTools", "mcp__sortie", "--mcp-config", config
    )  # fmt: skip
