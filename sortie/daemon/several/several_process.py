"""The process of several workflows: what there is once, and its end."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.config.settings import Settings
from sortie.daemon.common_pools import CommonPools
from sortie.daemon.guards import Guards, published_shortages
from sortie.daemon.leadership import Leaderships
from sortie.daemon.options import RunOptions
from sortie.daemon.process import in_daemon_process
from sortie.daemon.secrets_in_settings import known_secrets
from sortie.daemon.service_manager import ServiceManager
from sortie.daemon.several.conflicts import conflict
from sortie.daemon.several.member_process import SharedParts
from sortie.daemon.several.shared_http import SharedHttp
from sortie.daemon.several.shared_shutdown import SharedShutdown
from sortie.daemon.several.shared_slots import SharedSlots
from sortie.daemon.several.supervisor import WorkflowSupervisor
from sortie.daemon.several.workflow_states import WorkflowStates
from sortie.daemon.shutdown import EXIT_IDLE_BUT_LEFT
from sortie.daemon.transports import RemoteHosts, local_transport
from sortie.daemon.workflow_file import load_workflow
from sortie.facts import DaemonStopped, DaemonStopping, Fact
from sortie.model import SortieError, WorkflowError
from sortie.orchestrator.loop import IDLE_POLLS
from sortie.resources import run_in_thread
from sortie.resources.heap import share_heap
from sortie.resources.prctl import forbid_inspection
from sortie.telemetry.log import LogSink
from sortie.telemetry.log import hide as hide_in_log
from sortie.transports.local import RunGroups, establish_isolation, mark_of_database

_IDLE_LOOK = 0.5  # seconds between two looks whether all workflows are idle


class SeveralOptions(Struct, frozen=True, kw_only=True):
    """The workflow files by the names of their workflows; ``common`` is what the command line says
    to all, and ``max_agents`` the common limit, None for the largest of theirs."""

    common: RunOptions
    workflows: Mapping[str, Path]
    max_agents: int | None = None

    def of(self, name: str) -> RunOptions:
        """Return the options of one workflow."""
        return replace(self.common, workflow=self.workflows[name])


def run_several(options: SeveralOptions) -> int:
    """Run until a signal, or idleness where asked for; return the exit code.

    Raises SortieError where the process cannot start: two workflows are in each other's way, no
    file is valid, or the port is taken. A single workflow that is broken is no reason.
    """
    forbid_inspection()  # before there is anything to be seen
    share_heap()
    found, errors = _read(options)
    for name in found:
        before = dict(list(found.items())[: list(found).index(name)])
        if (fault := conflict(name, found[name], before)) is not None:
            raise SortieError(fault)
    if not found:
        raise errors[0]
    first = next(iter(found.values()))
    given = first.server.auth_token
    token = given.get_secret_value() if given is not None else secrets.token_urlsafe(32)
    hidden = frozenset[str]().union(
        *(known_secrets(settings, options.common.environ, token) for settings in found.values())
    )

    async def live(guards: Guards) -> int:
        return await _Several(options, first, token, guards).run()

    return in_daemon_process(first.logging, options.common.colours, hidden, live)


def _read(options: SeveralOptions) -> tuple[dict[str, Settings], list[WorkflowError]]:
    """Return the settings of the files that are valid, and what is wrong with the others."""
    found, errors = {}, []
    for name in options.workflows:
        try:
            found[name] = load_workflow(options.of(name)).settings
        except WorkflowError as exc:
            errors.append(exc)
    return found, errors


class _Several:
    """The process; server and logging are those of its first valid workflow."""

    def __init__(
        self, options: SeveralOptions, first: Settings, token: str, guards: Guards
    ) -> None:
        self._options = options
        self._first = first
        self._token = token
        self._guards = guards
        self._log = LogSink(first.logging.level)
        self._manager = ServiceManager.of(options.common.environ, self._publish)
        self._secrets: dict[str, Set[str]] = {}
        # Two lives of this process have two names; what one has started is known by its mark.
        self._name = uuid.uuid4().hex
        self._supervisors: Sequence[WorkflowSupervisor] = [
            WorkflowSupervisor(name, options.of(name), self._name, self._settings_of_others)
            for name in options.workflows
        ]

    def _publish(self, fact: Fact) -> None:
        self._log(fact)
        if isinstance(fact, DaemonStopping):
            self._manager(fact)

    def _settings_of_others(self, name: str) -> Mapping[str, Settings]:
        return {
            each.name: each.settings
            for each in self._supervisors
            if each.name != name and each.settings is not None and each.status != "broken"
        }

    def _hide(self, name: str, known: Set[str]) -> None:
        self._secrets[name] = known
        hide_in_log(frozenset[str]().union(*self._secrets.values()))

    async def run(self) -> int:
        """Begin all workflows, and keep them going until asked to stop."""
        environ = self._options.common.environ
        mark = mark_of_database(self._name)
        groups = RunGroups.open(f"sortie-{mark:x}")
        isolation = await run_in_thread(establish_isolation, self._first.isolation, mark, groups)
        local, hosts = local_transport(environ, isolation), RemoteHosts()
        shutdown = SharedShutdown(local, self._publish, self._guards.deadline)
        slots = SharedSlots(self._options.max_agents, self._settings, self._publish)
        leaderships = Leaderships()
        parts = SharedParts(
            token=self._token,
            level=self._first.logging.level,
            manager=self._manager,
            isolation=isolation,
            local=local,
            hosts=hosts,
            guards=self._guards,
            shutdown=shutdown,
            shortages=published_shortages(self._publish),
            slots=slots,
            http=SharedHttp(self._publish, leaderships),
            hide=self._hide,
            leaderships=leaderships,
            common=CommonPools(leaderships, self._options.max_agents, self._publish),
        )
        parts.leaderships.watchdog.find_runs_by(
            cgroup=None if groups is None else groups.directory, mark=isolation.mark
        )
        try:
            await self._work(parts)
        finally:
            self._guards.watchdog.leave_within()
            self._guards.watchdog.leave_within(self._guards.deadline.left())
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as closing:
                    closing.start_soon(local.close)
                    closing.start_soon(hosts.aclose, self._guards.deadline.closed_until)
                    closing.start_soon(parts.leaderships.aclose)
        self._publish(DaemonStopped(reason=shutdown.reason))
        return shutdown.exit_code

    async def _work(self, parts: SharedParts) -> None:
        states = WorkflowStates(self._supervisors, parts.slots, self._secrets)
        async with trio.open_nursery() as services:
            self._guards.start(services, parts.shortages, self._publish, self._is_idle)
            services.start_soon(self._manager.pulse, states.standing)
            await services.start(parts.shutdown.handle_signals, self._reload)
            assert isinstance(parts.http, SharedHttp)
            await parts.http.start(
                services, self._first.server, self._first.webhooks.port, self._token, states
            )
            services.start_soon(parts.slots.run)
            services.start_soon(parts.common.run)
            services.start_soon(self._announce)
            if self._options.common.exit_when_idle:
                services.start_soon(self._stop_when_idle, parts.shutdown, services)
            async with trio.open_nursery() as workflows:
                for each in self._supervisors:
                    workflows.start_soon(each.run, parts)
            services.cancel_scope.cancel()

    def _settings(self) -> list[Settings]:
        """Return the settings in force of workflows that work, and those last read of others."""
        return [
            view.orchestrator.settings
            if each.member is not None and (view := each.member.view) is not None
            else each.settings
            for each in self._supervisors
            if each.settings is not None
        ]

    async def _announce(self) -> None:
        """Tell the service manager once all have begun, or are broken."""
        for each in self._supervisors:
            await each.settled.wait()
        self._manager.started()

    def _reload(self) -> None:
        self._manager.reloading()
        for each in self._supervisors:
            each.reload()
        if not any(each.member is not None for each in self._supervisors):
            self._manager.started()  # no message will tell that a file was read

    def _is_idle(self) -> bool:
        lives = [each.member.live_runs for each in self._supervisors if each.member is not None]
        return all(runs is None or runs.is_empty() for runs in lives)

    async def _stop_when_idle(self, shutdown: SharedShutdown, nursery: trio.Nursery) -> None:
        """Leave as soon as no workflow has anything to do or to wait for."""
        while not all(map(_has_nothing_to_do, self._supervisors)):
            await trio.sleep(_IDLE_LOOK)
        if not shutdown.asked:
            is_broken = any(each.status == "broken" for each in self._supervisors)
            left = shutdown.log_unfinished()
            shutdown.exit_code = EXIT_IDLE_BUT_LEFT if is_broken else left
            shutdown.begin(nursery, "idle")


def _has_nothing_to_do(supervisor: WorkflowSupervisor) -> bool:
    member = supervisor.member
    if member is None or member.view is None:
        return supervisor.status == "broken"
    return member.view.orchestrator.snapshot().idle_polls >= IDLE_POLLS
