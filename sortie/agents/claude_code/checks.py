"""What ``sortie doctor`` asks of Claude Code: whether there is a login at all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from sortie.agents import AgentLook
from sortie.model.checks import Check, CheckResult, passed, warned

_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_PROVIDERS = {"CLAUDE_CODE_USE_BEDROCK": "Bedrock", "CLAUDE_CODE_USE_VERTEX": "Vertex"}
_REMEDY = (
    "set ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN made by 'claude setup-token', in the"
    " environment of the daemon, and of this command; or log in with 'claude' as the daemon's user"
)


def checks(look: AgentLook) -> Sequence[Check]:
    """Return the check of the credential; only a turn, which costs, shows if it is accepted."""

    async def ask() -> CheckResult:
        found = _credential(look.params.env)
        if found is not None:
            return passed(f"{found}; whether it is accepted is told by the first turn")
        where = "here to be handed to the hosts" if look.remote else "in the environment or on disk"
        return warned(f"there is no login for Claude Code {where}", _REMEDY)

    return (Check(name="credential", ask=ask),)


def _credential(env: Mapping[str, str]) -> str | None:
    """Say what Claude Code would log in with, None where nothing is known."""
    for name, provider in _PROVIDERS.items():
        if env.get(name, "") not in ("", "0"):
            return f"{name} is set: {provider} is asked with its own credentials"
    for name in _KEYS:
        if env.get(name, "").strip():
            return f"{name} is set"
    directory = env.get("CLAUDE_CONFIG_DIR") or os.path.join(env.get("HOME", "/"), ".claude")
    path = os.path.join(directory, ".credentials.json")
    return f"there is a login in {path}" if os.path.isfile(path) else None
