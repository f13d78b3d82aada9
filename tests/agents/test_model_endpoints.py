"""Which agents can be led to their model by a variable."""

from __future__ import annotations

import pytest

from sortie.agents import ADAPTERS, AgentCommand


@pytest.mark.parametrize(
    ("kind", "command", "variables"),
    [
        ("claude-code", None, ["ANTHROPIC_BASE_URL"]),
        ("claude-code", "/opt/claude", ["ANTHROPIC_BASE_URL"]),
        ("codex", None, ["OPENAI_BASE_URL"]),
        ("kiro", None, []),
        ("acp", None, ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"]),
        ("acp", "/opt/bin/opencode acp", ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"]),
        ("acp", ("opencode", "acp"), ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"]),
        ("acp", "gemini --acp -m gemini-2.5-pro", ["GOOGLE_GEMINI_BASE_URL"]),
        ("acp", ("node", "/opt/gemini-cli/bundle/gemini.js", "--acp"), ["GOOGLE_GEMINI_BASE_URL"]),
        ("acp", "claude-agent-acp", ["ANTHROPIC_BASE_URL"]),
        ("acp", ("node", "/n/claude-agent-acp/dist/index.js"), ["ANTHROPIC_BASE_URL"]),
        ("acp", "node /n/codex-acp/dist/index.js", []),
        ("acp", "copilot --acp", []),
        ("acp", "kiro-cli acp", []),
        ("acp", "an 'open quotation", []),
    ],
)
def test_endpoints_of_agents(kind: str, command: AgentCommand, variables: list[str]) -> None:
    """An adapter knows those of its agents that were seen to follow a variable."""
    endpoints = ADAPTERS.load(kind).model_endpoints(command)

    assert [endpoint.base_url for endpoint in endpoints] == variables
