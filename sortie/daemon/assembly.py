"""From settings to the parts that obey them."""

from __future__ import annotations

import os
from collections.abc import Mapping

import trio

from sortie import agents
from sortie.agents.launch import resolve_command
from sortie.config import Settings
from sortie.daemon.holding import HeldElsewhere, Lock
from sortie.model import (
    LOCAL,
    AgentError,
    StoreError,
    WorkspaceError,
)
from sortie.orchestrator.office import Readiness
from sortie.store import Store
from sortie.trackers import Tracker
from sortie.transports import Transport
from sortie.worker import Bench
from sortie.workflow import Workflow
from sortie.workspaces import Secrets, Workspaces


def secrets_of(settings: Settings) -> Secrets:
    """Return what agents, hooks and logs must not see."""
    known = (settings.tracker.api_key, settings.server.auth_token)
    values = frozenset(secret.reveal() for secret in known if secret is not None)
    return Secrets(names=frozenset(settings.secret_variables), values=values)


def make_bench(
    workflow: Workflow, tracker: Tracker, transport: Transport, environ: Mapping[str, str]
) -> Bench:
    """Make the tools of the runs that start under these settings."""
    settings = workflow.settings
    adapter = agents.load(settings.agent.kind)
    context = agents.AgentContext(
        command=settings.agent.command,
        settings=settings.block(adapter.block_name),
        clock=trio.current_time,
    )
    return Bench(
        settings=settings,
        prompt=workflow.prompt,
        agent=adapter.create(context),
        transport=transport,
        workspaces=Workspaces(settings.workspace.root, transport),
        tracker=tracker,
        environ=environ,
        secrets=secrets_of(settings),
        local=transport,
        workflow=str(workflow.path),
    )


async def agent_program(bench: Bench) -> tuple[str, ...]:
    """Return the command with which agents are launched here. Raises AgentError."""
    adapter = agents.load(bench.settings.agent.kind)
    return await resolve_command(
        bench.settings.agent.command,
        adapter.default_command,
        bench.transport,
        bench.environ.get("PATH"),
    )


async def simulator_of(bench: Bench) -> str | None:
    """Return the path of the agent's program where it only stands in for the agent."""
    simulators = agents.load(bench.settings.agent.kind).simulators
    try:
        command = await agent_program(bench)
    except AgentError:
        return None
    is_one = any(os.path.basename(part) in simulators for part in command)
    return command[0] if is_one else None


async def preflight(bench: Bench, store: Store, lock: Lock) -> Readiness:
    """Look whether runs can be recorded, have a place, which is ours, and an agent."""
    try:
        await store.check()
        await bench.workspaces.check()
        await trio.to_thread.run_sync(lock.ensure)
    except (StoreError, WorkspaceError, HeldElsewhere, OSError) as exc:
        return Readiness(fault=str(exc))
    if bench.transport.host == LOCAL:
        try:
            await agent_program(bench)
        except AgentError as exc:
            return Readiness(hindrance=str(exc))
    return Readiness()
