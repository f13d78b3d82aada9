"""Which agents that speak ACP can be led to their model by a variable: those that were seen so."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from sortie.agents import AgentCommand
from sortie.agents.acp.settings import DEFAULT_COMMAND
from sortie.model.model_endpoints import ModelEndpoint

_OPENCODE = (
    ModelEndpoint(
        base_url="ANTHROPIC_BASE_URL",
        default="https://api.anthropic.com/v1",
        keys=("ANTHROPIC_API_KEY",),
    ),
    ModelEndpoint(
        base_url="OPENAI_BASE_URL",
        default="https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
    ),
)
"""Seen with 1.18.33; an address in its own configuration goes before the variable."""

_CLAUDE = (
    ModelEndpoint(
        base_url="ANTHROPIC_BASE_URL",
        default="https://api.anthropic.com",
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        unless=("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
    ),
)
"""Seen with claude-agent-acp 0.101.0, which starts Claude Code."""

_GEMINI = (
    ModelEndpoint(
        base_url="GOOGLE_GEMINI_BASE_URL",
        default="https://generativelanguage.googleapis.com",
        keys=("GEMINI_API_KEY",),
        unless=("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"),
    ),
)
"""Seen with 0.61.0."""

_BY_PROGRAM: Mapping[str, Sequence[ModelEndpoint]] = {
    "claude-agent-acp": _CLAUDE,
    "gemini": _GEMINI,
    "opencode": _OPENCODE,
}


def model_endpoints(command: AgentCommand) -> Sequence[ModelEndpoint]:
    """Return those of the agent that a command starts, empty for one that is not known."""
    programs = (_program(word) for word in _words(command))
    return next((_BY_PROGRAM[name] for name in programs if name in _BY_PROGRAM), ())


def _words(command: AgentCommand) -> Sequence[str]:
    if isinstance(command, tuple):
        return command
    try:
        return shlex.split(command or DEFAULT_COMMAND)
    except ValueError:  # a quotation mark without another: no shell would take it
        return ()


def _program(word: str) -> str:
    """Return the name of a program; of a script ``dist/index.js`` that of its package."""
    path = PurePosixPath(word)
    if path.parts[-2:] == ("dist", "index.js"):
        return path.parent.parent.name
    return path.name.removesuffix(".js").removesuffix(".exe")
