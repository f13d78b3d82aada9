"""The adapter for Codex over its app-server protocol; its README states keys and events."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sortie.agents import AgentAdapter, AgentContext, AgentLook
from sortie.agents.codex.settings import (
    DEFAULT_COMMAND,
    ENV_NAMES,
    MODEL_ENDPOINT,
    CodexSettings,
    read_only,
    warn,
)
from sortie.agents.permissions import leaves_to_people

if TYPE_CHECKING:
    from sortie.agents.codex.agent import CodexAgent
    from sortie.model.checks import Check


def create(context: AgentContext) -> CodexAgent:
    """Make the adapter. Raises TypeError where the settings are another adapter's."""
    from sortie.agents.codex.agent import CodexAgent

    if not isinstance(context.settings, CodexSettings):
        raise TypeError(f"the codex adapter needs CodexSettings, not {type(context.settings)}")
    return CodexAgent(context.command, context.settings)


def checks(look: AgentLook) -> Sequence[Check]:
    """Return what the doctor looks at."""
    from sortie.agents.codex.checks import checks

    return checks(look)


async def hindrance(look: AgentLook) -> str | None:
    """Return why Codex's own sandbox does not work behind a wall; see AgentAdapter."""
    from sortie.agents.codex.checks import WALLED, sandbox_hindrance

    broken = await sandbox_hindrance(look)
    return None if broken is None else f"{broken}; {WALLED}"


def keeps(env: Mapping[str, str], _argv: Sequence[str]) -> Sequence[str]:
    """Return the directory of configuration, login and threads."""
    return (env.get("CODEX_HOME") or os.path.join(env.get("HOME", "/"), ".codex"),)


ADAPTER = AgentAdapter(
    kind="codex",
    block_name="codex",
    block=CodexSettings,
    default_command=DEFAULT_COMMAND,
    env_names=ENV_NAMES,
    create=create,
    warn=warn,
    checks=checks,
    resumes=True,
    reports=frozenset({"tokens"}),
    read_only=read_only,
    keeps=keeps,
    model_endpoints=lambda _command: (MODEL_ENDPOINT,),
    hindrance=hindrance,
    leaves_to_people=lambda settings: leaves_to_people(settings.permissions),
    demo={"sandbox": "danger-full-access"},
    provider="openai",
)
