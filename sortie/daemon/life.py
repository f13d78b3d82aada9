"""How a daemon goes on where an earlier one stopped, and lets commands find it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from uuid import uuid4

import trio
from msgspec.structs import replace

from sortie.daemon.daemon_process import DaemonProcess
from sortie.daemon.endpoint_file import EndpointFile, endpoint_of_this_process
from sortie.daemon.going_on import goes_on
from sortie.daemon.run_contexts import RunContexts, has_program
from sortie.model import LOCAL, TransportError
from sortie.orchestrator import Orchestrator, OrchestratorContext
from sortie.orchestrator.recovery import Recovery, recover
from sortie.resources import Shortage, run_in_thread
from sortie.scheduler import Memory, Record, RunIds, Scheduler, policy_of
from sortie.scheduler.grants import SlotGrant
from sortie.store import Store
from sortie.telemetry import Publish, facts
from sortie.transports import Transport
from sortie.workflow.loader import Workflow

_ASKED_WITHIN = 10.0
"""Seconds for which the start of a daemon waits for the namespaces in which runs have pods."""


async def recalled(
    workflow: Workflow,
    store: Store,
    contexts: RunContexts,
    publish: Publish,
    notify: Callable[[Sequence[Record]], tuple[Record, ...]],
) -> Memory:
    """End what an earlier daemon left running, and take over what it recorded."""
    settings = workflow.settings
    await _ask_namespaces(workflow, contexts)
    recovery = Recovery(
        store=store,
        transport_of=lambda host: contexts.for_host(host).transport,
        publish=publish,
        wall=time.time,
        grace=settings.agent.stop_grace,
        has_program=lambda rule: has_program(contexts.for_host(LOCAL, rule)),
        notify=notify,
        traced=settings.traces is not None,
        goes_on=lambda run, rule: goes_on(run, rule, contexts.by_rule, contexts.for_host),
    )
    return await recover(recovery, policy_of(settings))


async def _ask_namespaces(workflow: Workflow, contexts: RunContexts) -> None:
    """Take the leases of the namespaces in which runs have pods, as far as seconds allow.

    Where a killed daemon's lease is not over yet, the namespace rests until it is. Without that, a
    first run would meet the lease, and be recorded as failed.
    """
    if workflow.settings.worker.kubernetes is None:
        return
    with trio.move_on_after(_ASKED_WITHIN):
        async with trio.open_nursery() as nursery:
            for host in workflow.settings.worker.hosts:
                nursery.start_soon(_ask_namespace, contexts.for_host(host).transport)


async def _ask_namespace(transport: Transport) -> None:
    with suppress(TransportError):  # the transport tells it, and the namespace rests
        await transport.sweep((), grace=0.0)


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
    return Orchestrator(scheduler, settings, context, on_crash, memory.comments, memory.taken_over)


async def write_endpoint(
    workflow: Workflow, process: DaemonProcess, url: str | None, publish: Publish
) -> EndpointFile:
    """Let commands find this daemon; it works without that, too."""
    isolation = process.isolation
    endpoint = replace(
        endpoint_of_this_process(url, process.token, str(workflow.path)),
        isolation=isolation.detail,
        isolation_refused=isolation.refused,
    )
    file = EndpointFile(workflow.settings.db_path, endpoint)
    try:
        await run_in_thread(file.write)
    except (OSError, Shortage) as exc:
        error = getattr(exc, "strerror", None) or str(exc)
        publish(facts.ControlUnavailable(path=file.path, error=error))
    return file
