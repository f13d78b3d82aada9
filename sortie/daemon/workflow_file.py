"""WORKFLOW.md, read with all that the adapters know of its blocks."""

from __future__ import annotations

from sortie import agents, trackers
from sortie.config import BlockSchema, Schemas
from sortie.daemon.options import RunOptions
from sortie.workflow import Workflow, load


def schemas() -> Schemas:
    """Collect the blocks of all adapters there are."""
    return Schemas(
        agents={
            a.kind: BlockSchema(block_name=a.block_name, model=a.block, warn=a.warn)
            for a in map(agents.load, agents.kinds())
        },
        trackers={
            t.kind: BlockSchema(block_name=t.block_name, model=t.block)
            for t in map(trackers.load, trackers.kinds())
        },
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
