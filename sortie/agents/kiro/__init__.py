"""The adapter for Kiro CLI; its README states keys, limits and error mapping."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sortie.agents import AgentAdapter, AgentContext, AgentLook
from sortie.agents.kiro.settings import (
    DEFAULT_COMMAND,
    KiroSettings,
    read_only,
    tools_hindrance,
    warn,
)
from sortie.kiro.headless.arguments import KEY_NAME
from sortie.kiro.places import KiroPlaces

if TYPE_CHECKING:
    from sortie.agents.kiro.agent import KiroAgent
    from sortie.model.checks import Check


def create(context: AgentContext) -> KiroAgent:
    """Make the adapter. Raises TypeError where the settings are another adapter's."""
    from sortie.agents.kiro.agent import KiroAgent

    if not isinstance(context.settings, KiroSettings):
        raise TypeError(f"the kiro adapter needs KiroSettings, not {type(context.settings)}")
    return KiroAgent(context.command, context.settings, context.clock)


def checks(look: AgentLook) -> Sequence[Check]:
    """Return what the doctor looks at."""
    from sortie.agents.kiro.checks import checks

    return checks(look)


def keeps(env: Mapping[str, str], _argv: Sequence[str]) -> Sequence[str]:
    """Return the directories of login, settings and sessions."""
    places = KiroPlaces.of(env)
    return (os.path.dirname(places.database), os.path.dirname(places.sessions))


ADAPTER = AgentAdapter(
    kind="kiro",
    block_name="kiro",
    block=KiroSettings,
    default_command=DEFAULT_COMMAND,
    env_names=(KEY_NAME,),
    create=create,
    adoptable=True,
    warn=warn,
    reports=frozenset({"credits"}),
    simulators=frozenset({"sortie-kiro-sim", "sortie.kiro.simulator"}),
    demo={"trust_all_tools": True},
    tools_hindrance=tools_hindrance,
    checks=checks,
    read_only=read_only,
    keeps=keeps,
)
