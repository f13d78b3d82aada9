"""WORKFLOW.md, read with all that the adapters know of its blocks."""

from __future__ import annotations

from functools import cache

from sortie import agents, trackers
from sortie.adapters import BrokenAdapter
from sortie.agents import AgentAdapter
from sortie.config import SECTIONS, BlockSchema, Schemas
from sortie.daemon.options import RunOptions
from sortie.trackers import TrackerAdapter
from sortie.workflow import Workflow, load


@cache
def schemas() -> Schemas:
    """Collect the blocks of all adapters there are, and what is wrong with the rest."""
    ports = (("tracker", trackers.ADAPTERS), ("agent", agents.ADAPTERS))
    every = [
        (kind not in port.built_in, section, kind, adapter)
        for section, port in ports
        for kind, adapter in port.found.items()
    ]
    found: dict[str, dict[str, BlockSchema]] = {section: {} for section, _ in ports}
    broken: dict[tuple[str, str], str] = {}
    taken = {"db_path", *SECTIONS}
    for _, section, kind, adapter in sorted(every, key=lambda each: each[0]):  # built in first
        if isinstance(adapter, BrokenAdapter):
            broken[section, kind] = str(adapter)
        elif adapter.block_name in taken:
            broken[section, kind] = f"its block {adapter.block_name!r} is another's name"
        else:
            taken.add(adapter.block_name)
            found[section][kind] = _block_of(adapter)
    return Schemas(agents=found["agent"], trackers=found["tracker"], broken=broken)


def _block_of(adapter: AgentAdapter | TrackerAdapter) -> BlockSchema:
    if isinstance(adapter, TrackerAdapter):
        return BlockSchema(block_name=adapter.block_name, model=adapter.block)
    return BlockSchema(block_name=adapter.block_name, model=adapter.block, warn=adapter.warn)


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
