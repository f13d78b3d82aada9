"""WORKFLOW.md, read with all that the adapters know of its blocks."""

from __future__ import annotations

from functools import cache
from typing import get_args

from sortie import agents, trackers
from sortie.adapters import BrokenAdapter
from sortie.agents import AgentAdapter, Spent
from sortie.config.decode import RATES_KEY, SECTIONS
from sortie.config.schemas import AgentSchema, Schemas, TrackerSchema
from sortie.daemon.options import RunOptions
from sortie.trackers import Capability, TrackerAdapter
from sortie.workflow.loader import Workflow, load


@cache
def schemas() -> Schemas:
    """Collect the blocks of all adapters there are, and what is wrong with the rest."""
    ports = (("tracker", trackers.ADAPTERS), ("agent", agents.ADAPTERS))
    every = [
        (kind not in port.built_in, section, kind, adapter)
        for section, port in ports
        for kind, adapter in port.found.items()
    ]
    agent_blocks: dict[str, AgentSchema] = {}
    tracker_blocks: dict[str, TrackerSchema] = {}
    broken: dict[tuple[str, str], str] = {}
    taken = {"db_path", RATES_KEY, *SECTIONS}
    for _, section, kind, adapter in sorted(every, key=lambda each: each[0]):  # built in first
        if isinstance(adapter, BrokenAdapter):
            broken[section, kind] = str(adapter)
        elif adapter.block_name in taken:
            broken[section, kind] = f"its block {adapter.block_name!r} is another's name"
        else:
            taken.add(adapter.block_name)
            if isinstance(adapter, TrackerAdapter):
                tracker_blocks[kind] = _tracker_block(adapter)
            else:
                agent_blocks[kind] = _agent_block(adapter)
    return Schemas(agents=agent_blocks, trackers=tracker_blocks, broken=broken)


def _agent_block(adapter: AgentAdapter) -> AgentSchema:
    unreported = frozenset(get_args(Spent)) - adapter.reports
    if "tokens" in adapter.reports:
        unreported -= {"cost"}  # it is estimated
    return AgentSchema(
        block_name=adapter.block_name,
        model=adapter.block,
        warn=adapter.warn,
        check=adapter.check,
        unreported=unreported,
        tools_hindrance=adapter.tools_hindrance,
        read_only=adapter.read_only,
        leaves_to_people=adapter.leaves_to_people,
        leads=lambda agent: bool(adapter.model_endpoints(agent.command)),
        commands=adapter.commands,
    )


def _tracker_block(adapter: TrackerAdapter) -> TrackerSchema:
    return TrackerSchema(
        block_name=adapter.block_name,
        model=adapter.block,
        required=adapter.required,
        known=frozenset(adapter.optional),
        has_labels=Capability.LABELS in adapter.capabilities,
        has_label_states=adapter.label_states,
        rights=adapter.rights,
        check=adapter.check,
    )


def load_workflow(options: RunOptions) -> Workflow:
    """Read and check WORKFLOW.md. Raises WorkflowError with every problem."""
    return load(
        options.workflow,
        schemas=schemas(),
        env=options.environ,
        env_file=options.env_file,
        flags=options.flags(),
        content=options.content,
    )
