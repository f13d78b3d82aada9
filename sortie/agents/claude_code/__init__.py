"""The adapter for Claude Code; its README states keys, events and error mapping."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sortie.agents import AgentAdapter, AgentContext, AgentLook
from sortie.agents.claude_code.settings import (
    DEFAULT_COMMAND,
    ENV_NAMES,
    MODEL_ENDPOINT,
    ClaudeCodeSettings,
    check,
    read_only,
    warn,
)

if TYPE_CHECKING:
    from sortie.agents.claude_code.agent import ClaudeCodeAgent
    from sortie.model.checks import Check


def create(context: AgentContext) -> ClaudeCodeAgent:
    """Make the adapter. Raises TypeError where the settings are another adapter's."""
    from sortie.agents.claude_code.agent import ClaudeCodeAgent

    if not isinstance(context.settings, ClaudeCodeSettings):
        given = type(context.settings)
        raise TypeError(f"the claude-code adapter needs ClaudeCodeSettings, not {given}")
    return ClaudeCodeAgent(context.command, context.settings, context.clock)


def checks(look: AgentLook) -> Sequence[Check]:
    """Return what the doctor looks at."""
    from sortie.agents.claude_code.checks import checks

    return checks(look)


def keeps(env: Mapping[str, str], _argv: Sequence[str]) -> Sequence[str]:
    """Return the directory of settings, login and sessions."""
    return (env.get("CLAUDE_CONFIG_DIR") or os.path.join(env.get("HOME", "/"), ".claude"),)


ADAPTER = AgentAdapter(
    kind="claude-code",
    block_name="claude-code",
    block=ClaudeCodeSettings,
    default_command=DEFAULT_COMMAND,
    env_names=ENV_NAMES,
    create=create,
    warn=warn,
    check=check,
    checks=checks,
    resumes=True,
    adoptable=True,
    read_only=read_only,
    keeps=keeps,
    reports=frozenset({"tokens", "cost"}),
    model_endpoints=lambda _command: (MODEL_ENDPOINT,),
    demo={"permission_mode": "acceptEdits", "allowed_tools": "Bash,Edit,Write"},
    provider="anthropic",
)
