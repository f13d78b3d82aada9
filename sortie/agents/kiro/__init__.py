"""The adapter for Kiro CLI; its README states keys, limits and error mapping."""

from __future__ import annotations

from sortie.agents import AgentAdapter, AgentContext
from sortie.agents.kiro.agent import DEFAULT_COMMAND, KiroAgent
from sortie.agents.kiro.credential import KEY_NAME
from sortie.agents.kiro.settings import KiroSettings, warn


def create(context: AgentContext) -> KiroAgent:
    """Make the adapter. Raises TypeError where the settings are another adapter's."""
    if not isinstance(context.settings, KiroSettings):
        raise TypeError(f"the kiro adapter needs KiroSettings, not {type(context.settings)}")
    return KiroAgent(context.command, context.settings, context.clock)


ADAPTER = AgentAdapter(
    kind="kiro",
    block_name="kiro",
    block=KiroSettings,
    default_command=DEFAULT_COMMAND,
    env_names=(KEY_NAME,),
    create=create,
    warn=warn,
    simulators=frozenset({"sortie-kiro-sim", "sortie.kiro.simulator"}),
)
