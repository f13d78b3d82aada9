"""The contexts of runs, made from the settings in force, and what must be there for a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import trio
from msgspec.structs import replace

from sortie import agents
from sortie.agents.launch import resolve_command
from sortie.config.settings import Settings
from sortie.daemon.going_on import agent_command
from sortie.daemon.locks import HeldElsewhere, Lock
from sortie.daemon.repositories import Repositories
from sortie.daemon.root_lock import RootLock
from sortie.daemon.sandboxes import sandboxed, sandboxed_on_host
from sortie.daemon.secrets_in_settings import secrets_of
from sortie.daemon.transports import TransportPool
from sortie.model import (
    LOCAL,
    AgentError,
    SortieError,
    StoreError,
    TransportError,
    WorkspaceError,
)
from sortie.model.secrets import redactor, unchanged
from sortie.orchestrator.context import Readiness
from sortie.resources import Shortage, Shortages, run_in_thread, shortage_behind
from sortie.store import Store
from sortie.telemetry.log import WORKFLOW
from sortie.trackers import Tracker
from sortie.transports import Transport
from sortie.transports.walls import SandboxedTransport
from sortie.worker import RemoteRepository, ReviewerAgent, RunContext
from sortie.workflow.loader import Workflow
from sortie.workspaces import Secrets, Workspaces, helper_env


class RunContexts:
    """The context of a run on each host, under the settings in force."""

    def __init__(
        self,
        workflow: Workflow,
        tracker: Tracker,
        transports: TransportPool,
        environ: Mapping[str, str],
        root_lock: RootLock,
        repositories: Repositories | None = None,
    ) -> None:
        self._tracker = tracker
        self._transports = transports
        self._environ = environ
        self._root_lock = root_lock
        self._repositories = repositories
        self._redact: Callable[[str], str] = unchanged
        self._walls: dict[tuple[str, str], SandboxedTransport | None] = {}
        self.use(workflow)

    def use(self, workflow: Workflow) -> None:
        """Let the next runs start under other settings. Raises SortieError where none can."""
        settings = workflow.settings
        secrets = secrets_of(settings)
        made = {one.rule: self._made(workflow, one, secrets) for one in settings.every()}
        names = {name for one in settings.every() for name in _agent_variables(one)}
        self._transports.workflow = WORKFLOW.get() or workflow.path.parent.name
        self._transports.helper_environ = helper_env(self._environ, tuple(sorted(names)), secrets)
        self._transports.use(settings)
        self._by_rule = made
        self._walls.clear()

    def _made(self, workflow: Workflow, settings: Settings, secrets: Secrets) -> RunContext:
        """Return the context of a run on this machine under the settings of a rule."""
        adapter = agents.ADAPTERS.load(settings.agent.kind)
        block = settings.block(adapter.block_name)
        agent = adapter.create(
            agents.AgentContext(
                command=settings.agent.command,
                settings=block,
                clock=trio.current_time,
            )
        )
        local = self._transports.local
        remote = self._remote_on(settings, LOCAL, local)
        env_file = workflow.env_file
        wall = None
        if not settings.worker.hosts:
            wall = sandboxed(
                settings,
                local,
                self._environ,
                mirror=None if remote is None else remote.at(settings.workspace.root).mirror,
                secret_files=() if env_file is None else (str(env_file.absolute()),),
                tell=self._transports.publish,
            )
        return RunContext(
            settings=settings,
            prompt=workflow.prompt_of(settings),
            agent=agent,
            transport=local,
            workspaces=Workspaces(settings.workspace.root, local, self._root_lock.check),
            tracker=self._tracker,
            environ=self._environ,
            secrets=secrets,
            local=local,
            workflow=str(workflow.path),
            resumes=adapter.resumes,
            adoptable=adapter.adoptable,
            agent_command=agent_command(settings, adapter.default_command),
            daemon=f"{os.uname().nodename}:{os.getpid()}",
            handed_over=(*adapter.env_names, *settings.worker.ssh_pass_env),
            redact=lambda text: self._redact(text),
            remote=remote,
            wall=wall,
            reviewer=_reviewer(settings),
            tools=() if adapter.tools_hindrance(block) else settings.usable_tools,
        )

    def hide(self, secrets: frozenset[str]) -> None:
        """Take these secrets out of what comes from runs, also of those that are under way."""
        self._redact = redactor(secrets)

    async def close_dropped(self, is_busy: Callable[[str], bool]) -> None:
        """Close the connections of dropped hosts, until cancelled; see TransportPool."""
        await self._transports.close_unwanted(is_busy)

    @property
    def local(self) -> RunContext:
        """The context of a run on this machine that no rule decides for."""
        return self._by_rule[""]

    @property
    def by_rule(self) -> Mapping[str, RunContext]:
        """The contexts of runs on this machine by the rule that decides, "" for the top level."""
        return self._by_rule

    def for_host(self, host: str, rule: str = "") -> RunContext:
        """Return the context of a run on a host; for a rule that is gone, that of the top level."""
        here = self._by_rule.get(rule, self.local)
        if host == LOCAL:
            return here
        transport = self._transports.transport(host, self.local.settings)
        workspaces = Workspaces(here.settings.remote_root, transport)
        remote = self._remote_on(here.settings, host, transport)
        key = (host, here.settings.rule)
        if key not in self._walls:
            self._walls[key] = self._wall_on(here, transport, remote)
        wall = self._walls[key]
        return replace(here, transport=transport, workspaces=workspaces, remote=remote, wall=wall)

    def _wall_on(
        self, here: RunContext, transport: Transport, remote: RemoteRepository | None
    ) -> SandboxedTransport | None:
        """Return the wall of runs on a host; it is kept, as it knows whether it works."""
        settings = here.settings
        return sandboxed_on_host(
            settings,
            transport,
            self._environ,
            {name: self._environ[name] for name in here.handed_over if name in self._environ},
            mirror=None if remote is None else remote.at(settings.remote_root).mirror,
            tell=self._transports.publish,
        )

    def _remote_on(
        self, settings: Settings, host: str, transport: Transport
    ) -> RemoteRepository | None:
        repository = None if self._repositories is None else self._repositories.of(settings)
        return None if repository is None else repository.on_host(host, transport)


def _agent_variables(settings: Settings) -> tuple[str, ...]:
    """Return the environment variables that the agents of a rule need, its reviewer's too."""
    reviewer = _reviewer(settings)
    kinds = {settings.agent.kind, *(() if reviewer is None else (reviewer.kind,))}
    return tuple(name for kind in kinds for name in agents.ADAPTERS.load(kind).env_names)


def _reviewer(settings: Settings) -> ReviewerAgent | None:
    """Return the agent that judges work, None where the settings want none."""
    review = settings.self_review
    if review is None or settings.repository.url is None:
        return None
    kind = review.agent or settings.agent.kind
    adapter = agents.ADAPTERS.load(kind)
    block = settings.block(adapter.block_name)
    if adapter.read_only is not None:
        block = adapter.read_only(block)
    if review.model is not None:
        block = block.model_copy(update={"model": review.model})
    command = settings.agent.command if kind == settings.agent.kind else None
    made = agents.AgentContext(command=command, settings=block, clock=trio.current_time)
    return ReviewerAgent(
        kind=kind,
        agent=adapter.create(made),
        model=getattr(block, "model", None),
        handed_over=(*adapter.env_names, *settings.worker.ssh_pass_env),
    )


async def agent_program(context: RunContext) -> tuple[str, ...]:
    """Return the command with which agents are launched here. Raises AgentError."""
    adapter = agents.ADAPTERS.load(context.settings.agent.kind)
    return await resolve_command(
        context.settings.agent.command,
        adapter.default_command,
        context.inside,
        context.environ.get("PATH"),
    )


async def has_program(context: RunContext) -> bool:
    """Tell whether agents can be launched here; True where runs are on remote hosts."""
    if context.settings.worker.hosts:
        return True
    try:
        await agent_program(context)
    except AgentError:
        return False
    return True


async def simulator_of(context: RunContext) -> str | None:
    """Return the path of the agent's program where it only stands in for the agent."""
    simulators = agents.ADAPTERS.load(context.settings.agent.kind).simulators
    try:
        command = await agent_program(context)
    except AgentError:
        return None
    is_one = any(os.path.basename(part) in simulators for part in command)
    return command[0] if is_one else None


async def _sandbox_trouble(context: RunContext) -> str | None:
    """Say why programs cannot be started in the sandbox that the settings want, None where they can
    or none is wanted. Raises TransportError for a shortage."""
    if context.wall is None:
        return None
    try:
        await context.wall.check()
    except SortieError as exc:
        if shortage_behind(exc) is not None:
            raise
        return str(exc)
    return None


async def preflight(
    contexts: Mapping[str, RunContext], store: Store, lock: Lock, shortages: Shortages
) -> Readiness:
    """Check that runs can be recorded, have a workspace root that is ours, and an agent.

    ``contexts`` are those of this machine by rule. The first trouble is returned, but for agents
    that are missing: of these each rule's is. Remote hosts are not checked. While this machine is
    short of something, one run at a time is launched, on whatever host.
    """
    context = contexts[""]
    hindrances: dict[str, str] = {}
    try:
        await store.check()
        if not context.settings.worker.hosts:
            await context.workspaces.check()
            await run_in_thread(lock.ensure)  # again where the root was made just now
            for rule, one in contexts.items():
                if (why := await _sandbox_trouble(one)) is not None:
                    hindrances[rule] = why
                    continue
                try:
                    await agent_program(one)
                except AgentError as exc:
                    if shortage_behind(exc) is not None:
                        return Readiness(shortage=str(exc))
                    hindrances[rule] = str(exc)
    except (StoreError, WorkspaceError, HeldElsewhere, OSError, Shortage, TransportError) as exc:
        return Readiness(fault=str(exc))
    hindrance = hindrances.pop("", None)
    if hindrance is not None or hindrances:
        return Readiness(hindrance=hindrance, rule_hindrances=hindrances)
    return Readiness(shortage="; ".join(shortages.shortages) or None)
