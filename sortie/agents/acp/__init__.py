"""The adapter for agents that speak the Agent Client Protocol; its README states the keys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sortie.agents import AgentAdapter, AgentContext
from sortie.agents.acp.endpoints import model_endpoints
from sortie.agents.acp.settings import (
    DEFAULT_COMMAND,
    AcpSettings,
    read_only,
    warn,
)
from sortie.agents.permissions import leaves_to_people

if TYPE_CHECKING:
    from sortie.agents.acp.agent import AcpAgent


def create(context: AgentContext) -> AcpAgent:
    """Make the adapter. Raises TypeError where the settings are another adapter's."""
    from sortie.agents.acp.agent import AcpAgent

    if not isinstance(context.settings, AcpSettings):
        raise TypeError(f"the acp adapter needs AcpSettings, not {type(context.settings)}")
    return AcpAgent(context.command, context.settings, context.clock)


_KEPT = {
    "codex-acp": (".codex",),
    "copilot": (".copilot", ".config/github-copilot"),
    "gemini": (".gemini",),
    "opencode": (".config/opencode", ".local/share/opencode", ".local/state/opencode"),
}
"""Below the home directory, by the name of the program."""


def keeps(env: Mapping[str, str], argv: Sequence[str]) -> Sequence[str]:
    """Return the directories of the agents that are known."""
    kept = _KEPT.get(os.path.basename(argv[0]) if argv else "", ())
    return tuple(os.path.join(env.get("HOME", "/"), name) for name in kept)


ADAPTER = AgentAdapter(
    kind="acp",
    block_name="acp",
    block=AcpSettings,
    default_command=DEFAULT_COMMAND,
    env_names=(),
    create=create,
    warn=warn,
    resumes=True,
    read_only=read_only,
    leaves_to_people=lambda settings: leaves_to_people(settings.permissions),
    keeps=keeps,
    model_endpoints=model_endpoints,
    commands={
        "codex-acp": "codex-acp",
        "copilot": "copilot --acp",
        "copilot-cli": "copilot --acp",
        "gemini": "gemini --acp -m MODEL",
        "gemini-cli": "gemini --acp -m MODEL",
        "opencode": "opencode acp",
        "agent-client-protocol": "the one that you have",
    },
    demo={"permissions": {"inside": {"default": "allow"}, "outside": {"default": "allow"}}},
)
