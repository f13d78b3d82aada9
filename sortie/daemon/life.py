"""One life of the daemon, from recovery to the exit code."""

from __future__ import annotations

import platform
import secrets
import time
from contextlib import suppress
from datetime import UTC, datetime
from uuid import uuid4

import trio
from prometheus_client import CollectorRegistry

from sortie import __version__
from sortie.daemon.assembly import (
    make_bench,
    preflight,
    secrets_of,
    simulator_of,
)
from sortie.daemon.holding import Lock, database_lock, root_lock
from sortie.daemon.leaving import Leaving
from sortie.daemon.loading import load_workflow
from sortie.daemon.options import RunOptions
from sortie.daemon.reloading import Reloader
from sortie.daemon.tally import Tally
from sortie.daemon.tracking import StoredSightings, make_tracker
from sortie.daemon.views import Window
from sortie.model import LOCAL, SortieError, WorkspaceError
from sortie.orchestrator import Office, Orchestrator
from sortie.orchestrator.asking import AskedTracker
from sortie.orchestrator.recovery import recall
from sortie.scheduler import Memory, Scheduler, policy_of, run_ids
from sortie.store import Store
from sortie.store.sqlite import open_store
from sortie.telemetry import Publish, facts
from sortie.telemetry.board import Board
from sortie.telemetry.facts import Fact
from sortie.telemetry.gauges import GaugeCollector
from sortie.telemetry.log import LogSink, configure
from sortie.telemetry.metrics import MetricsSink, expose
from sortie.transports.local import LocalTransport, become_subreaper
from sortie.web import Access, Endpoint, Sources, create_app, listen, serve
from sortie.worker import Bench
from sortie.worker.cleaning import removal_cookie
from sortie.workflow import Workflow


def run_daemon(options: RunOptions) -> int:
    """Run until a signal, or idleness where asked for; return the exit code.

    Raises WorkflowError for an invalid WORKFLOW.md and SortieError where it cannot start.
    """
    workflow = load_workflow(options)
    settings = workflow.settings
    configure(
        settings.logging.level,
        settings.logging.format,
        secrets=secrets_of(settings).values,
    )
    become_subreaper()
    try:
        return trio.run(_live, options, workflow)
    except BaseExceptionGroup as group:
        expected, other = group.split(SortieError)
        if expected is None or other is not None:
            raise
        raise _first(expected) from group


def _first(group: BaseExceptionGroup[SortieError]) -> SortieError:
    """Return the first expected failure of a group of nothing else."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


async def _live(options: RunOptions, workflow: Workflow) -> int:
    settings = workflow.settings
    with database_lock(settings.db_path) as lock, root_lock(settings.workspace.root) as place:
        try:
            lock.ensure()
        except OSError as exc:
            raise SortieError(
                f"cannot lock the database {settings.db_path}: {exc.strerror}; make its directory"
                " writable, or set db_path"
            ) from exc
        async with open_store(settings.db_path) as store:
            return await _Life(options, workflow, store, place).run()


class _Life:
    """The parts of a running daemon."""

    def __init__(self, options: RunOptions, workflow: Workflow, store: Store, place: Lock) -> None:
        self._options = options
        self._workflow = workflow
        self._store = store
        self._place = place
        self._registry = CollectorRegistry()
        self._board = Board(lambda: datetime.now(UTC))
        self._transport = LocalTransport(options.environ.get("PATH", ""))
        self._sinks: list[Publish] = [LogSink(), MetricsSink(self._registry), self._board]
        tracker = make_tracker(workflow, StoredSightings(store))
        self._tracker = AskedTracker(tracker, self._publish)
        self._bench = self._make_bench(workflow)
        self._reloader: Reloader | None = None

    def _publish(self, fact: Fact) -> None:
        for sink in self._sinks:
            sink(fact)

    def _make_bench(self, workflow: Workflow) -> Bench:
        return make_bench(workflow, self._tracker, self._transport, self._options.environ)

    async def run(self) -> int:
        """Recover, work until asked to stop, and return the exit code."""
        leaving = Leaving(None, self._transport, self._publish)
        async with trio.open_nursery() as services:
            await services.start(
                lambda task_status: leaving.heed_signals(self._reload, task_status=task_status)
            )
            await self._take_place()
            memory = await self._recover()
            tally = Tally(await self._store.totals())
            if not leaving.asked:
                await self._work(memory, tally, leaving, services)
            services.cancel_scope.cancel()
        self._publish(facts.DaemonStopped(reason=leaving.reason))
        return leaving.exit_code

    def _reload(self) -> None:
        if self._reloader is not None:
            self._reloader.force()

    async def _work(
        self, memory: Memory, tally: Tally, leaving: Leaving, services: trio.Nursery
    ) -> None:
        """Have issues worked on until somebody asks to leave."""
        self._sinks.append(tally)
        orchestrator = leaving.orchestrator = self._make_orchestrator(memory)
        reloader = self._reloader = Reloader(
            self._options, self._workflow, self._publish, lambda w: self._apply(w, orchestrator)
        )
        window = Window(
            orchestrator=orchestrator, board=self._board, tally=tally, workflow=reloader.view
        )
        self._registry.register(GaugeCollector(window.gauges))
        await self._open_web(services, window)
        self._announce()
        await self._announce_simulator()
        services.start_soon(reloader.run)
        if self._options.exit_when_idle:
            self._sinks.append(leaving)
            services.start_soon(leaving.when_idle, orchestrator)
        await orchestrator.run()

    def _announce(self) -> None:
        settings = self._workflow.settings
        self._publish(
            facts.DaemonStarted(
                version=__version__,
                python_version=platform.python_version(),
                workflow=str(self._workflow.path),
                agent=settings.agent.kind,
                tracker=settings.tracker.kind,
            )
        )

    async def _announce_simulator(self) -> None:
        program = await simulator_of(self._bench)
        if program is not None:
            self._publish(facts.AgentSimulated(program=program))

    async def _take_place(self) -> None:
        """Lock the workspace root; where that cannot be done yet, the preflights go on trying.

        Raises HeldElsewhere.
        """
        with suppress(WorkspaceError, OSError):
            await self._bench.workspaces.check()
            await trio.to_thread.run_sync(self._place.ensure)

    async def _recover(self) -> Memory:
        """End what an earlier life left running, and take over what it recorded."""
        recovered = await self._store.recover()
        policy = policy_of(self._workflow.settings)
        runs = [run.run_id for run in recovered.unfinished]
        cookies = runs + [removal_cookie(known) for known in recovered.workspaces]
        if cookies:
            grace = self._workflow.settings.agent.stop_grace
            count = await self._transport.sweep(cookies, grace=grace)
            if runs or count:
                self._publish(facts.OrphansReaped(where=LOCAL, count=count))
        memory, records = recall(recovered, policy, now=trio.current_time(), wall=time.time())
        if records:
            await self._store.commit(records, time.time())
        for run in recovered.unfinished:
            self._publish(facts.RunRecovered(run_id=run.run_id, issue=run.issue))
        return memory

    def _make_orchestrator(self, memory: Memory) -> Orchestrator:
        settings = self._workflow.settings
        scheduler = Scheduler(
            policy_of(settings),
            now=trio.current_time(),
            new_run_id=run_ids(uuid4()),
            memory=memory,
            epoch=time.time() - trio.current_time(),
        )
        office = Office(
            store=self._store,
            tracker=self._tracker,
            publish=self._publish,
            bench_for=lambda _host: self._bench,
            preflight=lambda: preflight(self._bench, self._store, self._place),
            wall=time.time,
        )
        return Orchestrator(scheduler, settings, office)

    def _apply(self, workflow: Workflow, orchestrator: Orchestrator) -> None:
        self._bench = self._make_bench(workflow)
        orchestrator.apply(workflow.settings, policy_of(workflow.settings))

    async def _open_web(self, services: trio.Nursery, window: Window) -> None:
        server = self._workflow.settings.server
        if server.port == 0:
            return
        given = server.auth_token
        listener = await listen(
            Endpoint(
                host=server.host,
                port=server.port,
                asked=server.port_given,
                token_given=given is not None,
            )
        )
        access = Access(
            host=server.host,
            loopback=listener.loopback,
            token=given.reveal() if given is not None else secrets.token_urlsafe(32),
        )
        sources = Sources(
            state=window.state,
            health=window.health,
            metrics=lambda accept: expose(self._registry, accept),
        )
        app = create_app(sources, access, self._publish)
        await services.start(serve, app, listener, self._publish)
