"""One workflow from its recovery to the reason of its end."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from sortie import __version__, trackers
from sortie.daemon.daemon_process import DaemonProcess
from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.daily_digest import DigestParts, keep_digests
from sortie.daemon.day_clock import keep_days
from sortie.daemon.event_log import DaemonEventLog
from sortie.daemon.hand_over import hand_over_when_asked
from sortie.daemon.history_limit import prune_history
from sortie.daemon.known_secrets import KnownSecrets
from sortie.daemon.last_failures import LastFailures, recorded_failures
from sortie.daemon.lease_views import WorkflowLease
from sortie.daemon.life import make_orchestrator, recalled, write_endpoint
from sortie.daemon.notification_service import NotificationService
from sortie.daemon.options import RunOptions
from sortie.daemon.recent_activity import RecentActivity
from sortie.daemon.reloader import Reloader, use_settings
from sortie.daemon.repositories import open_repositories
from sortie.daemon.root_lock import RootLock
from sortie.daemon.run_contexts import (
    RunContexts,
    preflight,
    simulator_of,
)
from sortie.daemon.secrets_in_settings import known_secrets
from sortie.daemon.totals import RunTotals
from sortie.daemon.traces import run_traces
from sortie.daemon.tracker import StoredSightings, open_tracker
from sortie.daemon.tracker_status import TrackerStatus
from sortie.daemon.transcripts import RunTranscripts
from sortie.daemon.transports import open_transports
from sortie.daemon.wall_time import utc_now
from sortie.daemon.workspace_sizes import forget_rescued, measure_workspaces
from sortie.facts import Fact
from sortie.model import LOCAL, WorkspaceError
from sortie.model.secrets import redactor
from sortie.orchestrator import Orchestrator, OrchestratorContext
from sortie.orchestrator.effects import poll_when_changed
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.resources import Shortage, run_in_thread
from sortie.scheduler import Memory
from sortie.store.database_store import DatabaseStore
from sortie.telemetry import Publish, facts
from sortie.telemetry.live_runs import LiveRuns
from sortie.trackers import Capability
from sortie.transports.local import UNMARKED, AgentLimits
from sortie.workflow.loader import Workflow

if TYPE_CHECKING:
    from sortie.daemon.candidacy import Candidacy


class Daemon:
    """The parts of a running workflow."""

    def __init__(
        self,
        options: RunOptions,
        workflow: Workflow,
        store: DatabaseStore,
        root_lock: RootLock,
        process: DaemonProcess,
        candidacy: Candidacy | None = None,
    ) -> None:
        self._options = options
        self._workflow = workflow
        self._store = store
        self._root_lock = root_lock
        self._process = process
        self._candidacy = candidacy
        self._live_runs = LiveRuns(utc_now)
        self._activity = RecentActivity(utc_now)
        self._transcripts = RunTranscripts(workflow.settings, self._publish)
        self._event_log = DaemonEventLog(workflow.settings, self._publish)
        self._traces = run_traces(workflow, options.environ, self._publish)
        secrets = known_secrets(workflow.settings, options.environ, process.token)
        self._secrets = KnownSecrets(secrets)
        self._secrets.tell(self._transcripts.writer.hide)
        self._secrets.tell(process.hide_in_log)
        self._notifications = NotificationService(workflow, store, self._publish)
        self._secrets.tell(self._notifications.maker.hide)
        self._sinks: list[Publish] = [
            *process.sinks,
            self._live_runs,
            self._activity,
            self._transcripts.sink,
            self._notifications.sink,
        ]
        if self._traces is not None:
            self._secrets.tell(self._traces.hide)
            self._sinks.append(self._traces)
        self._host_isolation: Callable[[], tuple[str, ...]]
        self._tracker: GuardedTracker

    def _publish(self, fact: Fact) -> None:
        for sink in self._sinks:
            sink(fact)

    async def run(self) -> None:
        """Recover, and work until the process ends."""
        environ, isolation = self._options.environ, self._process.isolation
        if not isolation.namespaces and isolation.mark is None and sys.platform == "linux":
            self._publish(facts.HostNoticed(host=LOCAL, message=UNMARKED))
        if isolation.groups is not None and isolation.groups.limits != AgentLimits():
            limits = isolation.groups.limits
            self._publish(facts.AgentsLimited(memory_bytes=limits.memory, tasks=limits.tasks))
        async with (
            open_transports(
                self._publish, environ, isolation, self._process.local, self._process.hosts
            ) as transports,
            open_tracker(
                self._workflow, StoredSightings(self._store), self._publish, environ
            ) as self._tracker,
            open_repositories(self._workflow.settings, self._secrets.mint) as repositories,
        ):
            contexts = RunContexts(
                self._workflow, self._tracker, transports, environ, self._root_lock, repositories
            )
            self._secrets.tell(contexts.hide)
            self._secrets.tell(lambda secrets: self._tracker.hide(redactor(secrets)))
            self._host_isolation = transports.host_isolation
            async with trio.open_nursery() as services:
                ending = await self._process.begin(services, transports, self._live_runs)
                services.start_soon(self._transcripts.writer.run)
                services.start_soon(self._event_log.writer.run)
                if self._traces is not None:
                    services.start_soon(self._traces.run)
                services.start_soon(self._notifications.run)
                await self._lock_root(contexts)
                self._publish(
                    facts.HostIsolation(
                        host=LOCAL, detail=isolation.detail, refused=isolation.refused
                    )
                )
                memory: Memory | None = None
                with ending.recovery:
                    notify = self._notifications.maker.recovered
                    memory = await recalled(
                        self._workflow, self._store, contexts, self._publish, notify
                    )
                if memory is not None and not ending.asked:
                    orchestrator = make_orchestrator(
                        self._workflow,
                        memory,
                        self._orchestrator_context(contexts),
                        self._process.crashing,
                        self._process.grant,
                    )
                    ending.orchestrator = orchestrator
                    transports.send_events_to(orchestrator.tell)
                    await self._work(orchestrator, contexts, services)
                self._process.finished(transports)
                services.cancel_scope.cancel()

    def _orchestrator_context(self, contexts: RunContexts) -> OrchestratorContext:
        adapter = trackers.ADAPTERS.load(self._workflow.settings.tracker.kind)
        return OrchestratorContext(
            store=self._store,
            tracker=self._tracker,
            publish=self._publish,
            run_context_for=contexts.for_host,
            preflight=lambda: preflight(
                contexts.by_rule, self._store, self._root_lock, self._process.shortages
            ),
            wall=time.time,
            compares=Capability.COMPARE_AND_SET in adapter.capabilities,
            decide=self._event_log.recorder.decide,
            notify=self._notifications.maker.with_notifications,
        )

    async def _work(
        self,
        orchestrator: Orchestrator,
        contexts: RunContexts,
        services: trio.Nursery,
    ) -> None:
        """Work on issues until a stop is asked for."""
        totals = RunTotals(await self._store.totals())
        claimed = [claim.issue for claim in orchestrator.snapshot().claims.values()]
        failures = LastFailures(utc_now, await recorded_failures(self._store, claimed))
        self._sinks += [totals, failures]
        reloader = Reloader(
            self._options,
            self._workflow,
            self._publish,
            lambda workflow: self._apply(workflow, contexts, orchestrator),
        )
        view = DaemonView(
            orchestrator=orchestrator,
            store=self._store,
            live_runs=self._live_runs,
            totals=totals,
            failures=failures,
            tracker=TrackerStatus(tracker=self._tracker, settings=lambda: orchestrator.settings),
            transcripts=self._transcripts.writer,
            workflow=reloader.view,
            shortages=self._process.shortages,
            recent=self._activity,
            secrets=lambda: self._secrets.values,
            transcripts_error=lambda: self._transcripts.writer.error,
            host_isolation=self._host_isolation,
            lease=self._lease(),
            notifications=self._notifications,
            deliveries=self._process.deliveries,
        )
        services.start_soon(
            contexts.close_dropped, lambda host: orchestrator.snapshot().by_host.get(host, 0) > 0
        )
        url = await self._process.serve(services, self._workflow.settings, view, reloader)
        endpoint_file = await write_endpoint(self._workflow, self._process, url, self._publish)
        try:
            await self._announce(contexts)
            await self._work_on(orchestrator, contexts, reloader, services)
        finally:
            endpoint_file.remove()

    def _lease(self) -> WorkflowLease | None:
        if self._candidacy is None:
            return None
        return WorkflowLease(self._candidacy, self._workflow.settings.store)

    def _apply(self, workflow: Workflow, contexts: RunContexts, orchestrator: Orchestrator) -> None:
        """Let all parts go by other settings, or none. Raises SortieError where they cannot."""
        use_settings(workflow, self._tracker, contexts, orchestrator)
        self._transcripts.use(workflow.settings)
        self._event_log.use(workflow.settings)
        self._notifications.use(workflow.settings)
        self._secrets.name(known_secrets(workflow.settings, self._options.environ))

    async def _work_on(
        self,
        orchestrator: Orchestrator,
        contexts: RunContexts,
        reloader: Reloader,
        services: trio.Nursery,
    ) -> None:
        await services.start(keep_days, orchestrator, self._store)
        services.start_soon(reloader.run)
        services.start_soon(self._activity.recall, self._store)
        services.start_soon(measure_workspaces, contexts, orchestrator.tell)
        services.start_soon(forget_rescued, contexts, time.time)
        services.start_soon(poll_when_changed, self._tracker, orchestrator.tell)
        digest = DigestParts(self._notifications, orchestrator, self._store, self._publish)
        services.start_soon(keep_digests, digest)
        services.start_soon(
            prune_history, self._store, lambda: reloader.workflow.settings.history.keep_days
        )
        if self._candidacy is not None:
            services.start_soon(hand_over_when_asked, self._candidacy, orchestrator, self._publish)
        if self._options.exit_when_idle:
            self._sinks += self._process.work_until_idle(services, orchestrator)
        await orchestrator.run()

    async def _announce(self, contexts: RunContexts) -> None:
        self._publish(
            facts.DaemonStarted(
                version=__version__,
                python_version=platform.python_version(),
                workflow=str(self._workflow.path),
                agent=self._workflow.settings.agent.kind,
                tracker=self._workflow.settings.tracker.kind,
            )
        )
        program = await simulator_of(contexts.local)
        if program is not None:
            self._publish(facts.AgentSimulated(program=program))

    async def _lock_root(self, contexts: RunContexts) -> None:
        """Lock the workspace root; where that cannot be done yet, the preflights go on trying.

        Raises HeldElsewhere.
        """
        if self._workflow.settings.worker.hosts:
            return  # it is not used on this machine
        with suppress(WorkspaceError, OSError, Shortage):
            await contexts.local.workspaces.check()
            await run_in_thread(self._root_lock.ensure)
