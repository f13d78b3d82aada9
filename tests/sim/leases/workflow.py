"""A workflow that several daemons can lead: its tracker, its rows, and what is known of its issues.

An account is kept by each leader for itself; what is committed of it is common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from copy import copy
from random import Random

import trio

from sortie.config.settings import Settings
from sortie.model import Failed, Issue, IssueId, RunId, RunReport, StopReason
from sortie.scheduler import Memory, Policy
from sortie.scheduler.claims import Claim
from tests.sim.leases.database import Rows
from tests.sim.leases.lease_server import LeaseServer
from tests.sim.system.account import Account, Ledger, Standing
from tests.sim.system.machine import Machine, Process
from tests.sim.system.programs import Shell
from tests.sim.system.trace import Trace
from tests.sim.system.witnesses import Witnesses
from tests.sim.system.world import sim_settings
from tests.trackers.fake import FakeTracker


class Workflow:
    """What outlives each leader. ``hosts`` are where its runs are, none for the leader's machine.

    ``durable`` is the account as far as it is committed; ``unheard`` are issues that were handed
    off, and no leader has heard so.
    """

    def __init__(
        self,
        name: str,
        issues: list[Issue],
        hosts: tuple[str, ...],
        path: str,
        server: LeaseServer,
        trace: Trace,
    ) -> None:
        self.name = name
        self.hosts = hosts
        self.truth = FakeTracker(issues)
        self.rows = Rows(name, path, server, trace)
        self.trace = trace
        self.durable = Ledger()
        self.unheard: set[IssueId] = set()
        self.settings: Settings = lease_settings(hosts)

    @property
    def names(self) -> list[str]:
        """The ids of its issues."""
        return list(map(str, self.truth._issues))

    def owns(self, issue_id: str) -> bool:
        """Tell whether an issue is of this workflow."""
        return issue_id in self.truth._issues

    def move_issue(self, name: str, state: str) -> None:
        """Have a person or an agent move an issue."""
        self.trace.note("tracker", f"{name} is moved to {state}")
        self.truth.edit(name, state=state)


class Fleet(Machine):
    """All machines, as the witnesses look at them; ``of_daemons`` are those that are no hosts.

    What a sleeping machine holds does nothing. Neither does what SIGKILL has met: where it lingers,
    it matters only to those who use its directory, on a host or on the same machine.
    """

    def __init__(self, nursery: trio.Nursery, shell: Shell, trace: Trace) -> None:
        self.machines: list[Machine] = []
        self.of_daemons: set[Machine] = set()
        self.asleep: set[Machine] = set()
        self.own: Machine | None = None
        super().__init__(nursery, shell, trace)

    def seen_from(self, machine: Machine) -> Fleet:
        """Return the same fleet as a daemon on a machine has to see it."""
        fleet = copy(self)
        fleet.own = machine
        return fleet

    @property
    def alive(self) -> list[Process]:
        """What may do something, on machines that are awake."""
        return [process for machine in self.machines for process in self.active(machine)]

    @alive.setter
    def alive(self, _processes: list[Process]) -> None:
        pass

    def active(self, machine: Machine) -> list[Process]:
        """Return what may do something on a machine."""
        if machine in self.asleep:
            return []
        lingers = machine not in self.of_daemons or machine is self.own
        return [process for process in machine.alive if lingers or not process.is_killed]


class LeaderAccount(Account):
    """The account of one leader, whose commits are the workflow's."""

    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow
        kept = workflow.durable
        super().__init__()
        workflow.durable = kept

    def end(self, run_id: RunId, report: RunReport, policy: Policy, now: float) -> None:
        """Note how a run ended; one that failed by its host is made again as the same attempt."""
        run, end = self.open[run_id], report.end
        standing = self.now.standings.get(run.start.issue.id, Standing())
        by_host = isinstance(end, Failed) and (end.unreached or end.adrift)
        keeps = by_host and run.stopped in (None, StopReason.SHUTDOWN)
        if isinstance(end, Failed) and not end.unreached and standing.interruptions:
            keeps = False
        super().end(run_id, report, policy, now)
        if keeps:
            issue_id = run.start.issue.id
            self.now.standings[issue_id] = Standing(standing.attempt, standing.interruptions)
            if isinstance(end, Failed) and not end.unreached:
                self.now.standings[issue_id].interruptions = 1
            if run.turn:
                self.now.sessions[issue_id] -= 1

    @property
    def _durable(self) -> Ledger:
        return self._workflow.durable

    @_durable.setter
    def _durable(self, ledger: Ledger) -> None:
        self._workflow.durable = ledger


class LeaderWitnesses(Witnesses):
    """See what one leader does. ``ends_by_itself`` tells of a process whether a host ends it before
    what is claimed for its issue lets that run again."""

    def __init__(
        self,
        fleet: Fleet,
        workflow: Workflow,
        account: Account,
        ends_by_itself: Callable[[Process, Mapping[IssueId, Claim]], bool],
        trace: Trace,
    ) -> None:
        super().__init__(fleet, workflow.rows.disk, account, trace)
        self._fleet = fleet
        self._workflow = workflow
        self._ends_by_itself = ends_by_itself
        self._claims: dict[IssueId, Claim] = {}
        self._unheard = workflow.unheard

    def recovered(self, memory: Memory) -> None:
        """See what a new leader begins with."""
        self._claims = {claim.issue.id: claim for claim in memory.claims}
        super().recovered(memory)

    def transition_heard(self, issue: Issue, state: str) -> None:
        """See an answer, which is lost with its leader unless it is committed: only that counts."""

    def assert_swept(self) -> None:
        """See that nothing is left of earlier leaders where a new one begins its work, but for what
        ends by itself on a host: one that does not answer, or that has no run on record."""
        for process in self._fleet.alive:
            if not process.cookie or not self._workflow.owns(process.issue_id):
                continue
            if not self._ends_by_itself(process, self._claims):
                self._trace.wrong(f"{process} outlives the recovery")


def lease_settings(hosts: tuple[str, ...]) -> Settings:
    """Return the settings of a workflow."""
    return sim_settings(
        tracker={"handoff_state": "Review", "in_progress_state": "Doing"},
        agent={
            "max_turns": 2,
            "max_concurrent_agents": 2,
            "turn_timeout_ms": 60_000,
            "stall_timeout_ms": 40_000,
            "stop_grace_ms": 2_000,
            "max_retry_backoff_ms": 20_000,
        },
        worker={"ssh_hosts": list(hosts)} if hosts else {},
        polling={"interval_ms": 20_000},
    )


def drawn_hosts(draw: Random) -> tuple[str, ...]:
    """Return where the runs of a workflow are."""
    return draw.choice([(), (), ("h1",), ("h1", "h2")])


WITNESSES: ContextVar[LeaderWitnesses] = ContextVar("WITNESSES")
"""Those of the leader for which a task runs."""
