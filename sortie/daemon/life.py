"""How a daemon goes on where an earlier one stopped: what it recalls, and the loop made of that."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import uuid4

import trio

from sortie.daemon.run_contexts import RunContexts, has_program
from sortie.model import LOCAL
from sortie.orchestrator import Orchestrator, OrchestratorContext
from sortie.orchestrator.recovery import Recovery, recover
from sortie.scheduler import Memory, RunIds, Scheduler, policy_of
from sortie.scheduler.grants import SlotGrant
from sortie.store import Store
from sortie.telemetry import Publish
from sortie.workflow.loader import Workflow


async def recalled(
    workflow: Workflow, store: Store, contexts: RunContexts, publish: Publish
) -> Memory:
    """End what an earlier daemon left running, and take over what it recorded."""
    settings = workflow.settings
    recovery = Recovery(
        store=store,
        transport_of=lambda host: contexts.for_host(host).transport,
        publish=publish,
        wall=time.time,
        grace=settings.agent.stop_grace,
        has_program=lambda rule: has_program(contexts.for_host(LOCAL, rule)),
    )
    return await recover(recovery, policy_of(settings))


def make_orchestrator(
    workflow: Workflow,
    memory: Memory,
    context: OrchestratorContext,
    on_crash: Callable[[], object],
    grant: SlotGrant | None = None,
) -> Orchestrator:
    """Return the loop that goes on with what is recalled; ``grant`` limits the slots where several
    workflows share a process."""
    settings = workflow.settings
    scheduler = Scheduler(
        policy_of(settings),
        now=trio.current_time(),
        new_run_id=RunIds(uuid4()),
        memory=memory,
        epoch=time.time() - trio.current_time(),
        grant=grant,
    )
    return Orchestrator(scheduler, settings, context, on_crash, memory.comments)
