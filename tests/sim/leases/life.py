"""One leader's life with a workflow: recovery, then the loop, until it is handed over or lost."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import trio

from sortie.daemon.candidacy import Candidacy
from sortie.daemon.hand_over import hand_over_when_asked
from sortie.facts import Fact
from sortie.model import LOCAL, IssueId, RunId, StoreError, WorkspaceError
from sortie.orchestrator import Orchestrator, OrchestratorContext
from sortie.orchestrator.context import Readiness
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.orchestrator.recovery import Recovery, recover
from sortie.resources.lease import Lease
from sortie.scheduler import Decision, Event, Memory, RunIds, Scheduler, policy_of
from sortie.scheduler.claims import Claim, Held, Waiting
from sortie.scheduler.events import ShutdownRequested
from sortie.worker import RunContext
from sortie.workspaces import Secrets, Workspaces
from tests.sim.leases.database import LeasedStore
from tests.sim.leases.hosts import HostTransport
from tests.sim.leases.ports import LeasedTracker, OwnMachine
from tests.sim.leases.surroundings import Surroundings
from tests.sim.leases.workflow import WITNESSES, LeaderAccount, LeaderWitnesses, Workflow
from tests.sim.system.agent import Moods, SimAgent
from tests.sim.system.machine import Process
from tests.sim.system.tracker import Tracked
from tests.sim.system.transport import SimTransport
from tests.sim.system.watching import WatchedScheduler
from tests.sim.system.world import PROMPT
from tests.worker.rig import HOME, ROOT


class Life:
    """A workflow that this process leads."""

    def __init__(
        self, around: Surroundings, workflow: Workflow, candidacy: Candidacy, lease: Lease
    ) -> None:
        self._around = around
        self._workflow = workflow
        self._candidacy = candidacy
        self._lease = lease
        self._wall = around.clock.wall
        self.stopping = False
        self.orchestrator: Orchestrator | None = None
        self._hosts = {
            name: HostTransport(
                around.hosts[name], around.plug, around.host_wires[name], lease, around.judge
            )
            for name in workflow.hosts
        }
        self._own = OwnMachine(around.machine, around.plug, lease, around.judge)
        self._account = LeaderAccount(workflow)
        self._witnesses = LeaderWitnesses(
            around.fleet, workflow, self._account, self._ends_by_itself, around.trace
        )

    async def lead(self, store: LeasedStore) -> None:
        """Lead until it is over."""
        WITNESSES.set(self._witnesses)
        memory = await self.recovered(store)
        await self.go_on(store, memory)

    async def recovered(self, store: LeasedStore) -> Memory:
        """Take over what an earlier leader left."""
        store.asked = lambda: self._account.now.copy()
        store.committed = self._witnesses.committed
        store.recovered = self._begin_account
        recovery = Recovery(
            store=store,
            transport_of=self._transport_of,
            publish=self._publish,
            wall=self._wall,
            grace=self._workflow.settings.agent.stop_grace,
            has_program=self._has_program,
        )
        return await recover(recovery, policy_of(self._workflow.settings))

    async def go_on(self, store: LeasedStore, memory: Memory) -> None:
        """Do the work of a leader, from what was recovered."""
        around, rows = self._around, self._workflow.rows
        # One whose machine has slept meanwhile is judged by what it does.
        if around.judge.is_newest(self._lease):
            around.judge.begins(self._lease, store.read_at, rows.commits - store.own_commits)
            self._witnesses.recovered(memory)
        self.orchestrator = orchestrator = self._orchestrator(store, memory)
        if self.stopping:
            self.stop()
        async with trio.open_nursery() as nursery:
            for transport in self._hosts.values():
                nursery.start_soon(transport.beat)
            nursery.start_soon(
                hand_over_when_asked, self._candidacy, orchestrator, self._publish_lease
            )
            await orchestrator.run()
            nursery.cancel_scope.cancel()
        if self._candidacy.handing_over is not None and not self.stopping:
            around.judge.hands_over(self._lease, self._candidacy.ending, self.left())

    def stop(self) -> None:
        """End in good order."""
        self.stopping = True
        if self.orchestrator is not None:
            self.orchestrator.giving_up = True
            self.orchestrator.shut_down()

    def end_at_once(self) -> None:
        """Have all that is under way end without grace."""
        for transport in (self._own, *self._hosts.values()):
            transport.hurry()
        if self.orchestrator is not None:
            self.orchestrator.cut()

    def left(self) -> list[str]:
        """Return what of the workflow is under way, but for what ends by itself on a host."""
        claims = {} if self.orchestrator is None else self.orchestrator.snapshot().claims
        alive = [
            process
            for process in self._around.fleet.alive
            if self._workflow.owns(process.issue_id) and not self._ends_by_itself(process, claims)
        ]
        return [*map(str, alive), *map(str, self._workflow.rows.disk.under_way)]

    def _orchestrator(self, store: LeasedStore, memory: Memory) -> Orchestrator:
        around, workflow = self._around, self._workflow
        policy, now = policy_of(workflow.settings), trio.current_time()
        scheduler = WatchedScheduler(
            policy,
            now=now,
            new_run_id=RunIds(UUID(int=self._lease.token)),
            memory=memory,
            epoch=self._wall() - now,
        )
        scheduler.watch(policy, self._account, around.fleet, around.trace)
        scheduler.is_left_to_others = self._is_taken_over
        tracked = Tracked(workflow.truth, around.draw, around.trace, line=around.line)
        tracked.moved = self._witnesses.transition_made
        tracked.heard = self._witnesses.transition_heard
        port = LeasedTracker(tracked, around.plug, around.nursery, self._lease, around.judge)
        tracker = GuardedTracker(port, self._publish)
        agent = SimAgent(around.draw, Moods(), around.plug)

        def run_context(host: str) -> RunContext:
            transport = self._transport_of(host)
            return RunContext(
                settings=workflow.settings,
                prompt=PROMPT,
                agent=agent,
                transport=transport,
                workspaces=Workspaces(ROOT, transport),
                tracker=tracker,
                environ={"PATH": "/bin"},
                secrets=Secrets(),
                local=self._own,
                workflow=f"{HOME}/WORKFLOW.md",
            )

        async def preflight() -> Readiness:
            try:
                await store.check()
                if not workflow.hosts:
                    await Workspaces(ROOT, self._own).check()
            except (StoreError, WorkspaceError) as exc:
                return Readiness(fault=str(exc))
            return Readiness()

        context = OrchestratorContext(
            store=store,
            tracker=tracker,
            publish=self._publish,
            run_context_for=lambda host, _rule: run_context(host),
            preflight=preflight,
            wall=self._wall,
            compares=True,
            decide=self._decide,
        )
        return Orchestrator(scheduler, workflow.settings, context, due_comments=memory.comments)

    def _decide(self, scheduler: Scheduler, event: Event, now: float) -> list[Decision]:
        """Have the scheduler decide; a hand-over stops no run."""
        handing_over = self._candidacy.handing_over
        if isinstance(event, ShutdownRequested) and handing_over and not self.stopping:
            worked = [claim.issue.identifier for claim in scheduler.snapshot(now).worked]
            self._around.judge.hands_over(self._lease, handing_over, worked)
        return scheduler.handle(event, now)

    def _ends_by_itself(self, process: Process, claims: Mapping[IssueId, Claim]) -> bool:
        """Tell whether a host ends a process whose run is over on record, or which belongs to none,
        before its issue may run again."""
        if RunId(process.cookie) in self._workflow.rows.disk.under_way:
            return False
        claim = claims.get(IssueId(process.issue_id))
        for host in self._around.hosts.values():
            link = host.links.get(process.root.pid)
            if process in host.machine.alive and link is not None:
                waits = isinstance(claim, Waiting) and claim.due_at >= link.silent_at
                return claim is None or isinstance(claim, Held) or waits
        return False

    def _is_taken_over(self, process: Process) -> bool:
        """Tell whether a newer leader ends a process, as it has taken the host over."""
        hosts = self._around.hosts.values()
        return any(h.knows_newer(self._lease) and process in h.machine.alive for h in hosts)

    def _transport_of(self, host: str) -> SimTransport:
        return self._own if host == LOCAL else self._hosts[host]

    async def _has_program(self, _rule: str) -> bool:
        await trio.lowlevel.checkpoint()
        return True

    def _publish_lease(self, fact: Fact) -> None:
        self._around.trace.tell("lease", fact)

    def _publish(self, fact: Fact) -> None:
        if not self._around.plug.pulled:
            self._witnesses.told(fact)

    def _begin_account(self) -> None:
        now, wall = trio.current_time(), self._wall()
        waits = {
            retry.issue.id: now + min(max(0.0, retry.due_at - wall), retry.delay)
            for retry in self._workflow.rows.disk.retries.values()
        }
        self._account.begin_life(policy_of(self._workflow.settings), now, waits)
