"""A driver with a disk, whose daemon may die and be born again."""

from __future__ import annotations

from uuid import UUID

from sortie.model import HoldReason, IssueId, KnownWorkspace, RunId, RunStatus, Streak
from sortie.orchestrator.recall import recall
from sortie.scheduler import Decision, Event, Policy, Record, RunIds, Scheduler
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Claim, Held
from tests.scheduler.driver import EPOCH, POLICY, Driver, issue
from tests.sim.disk import Disk
from tests.store.inline import memory_database

A = IssueId("a")


class Lives(Driver):
    """A Driver that writes each record to a disk, of which the next life knows."""

    def __init__(self, policy: Policy = POLICY) -> None:
        super().__init__(policy)
        self.policy = policy
        self.disk = Disk(memory_database())
        self._lives = 1

    def tell(self, event: Event) -> list[Decision]:
        """Give the scheduler one event, and write what it records."""
        if isinstance(event, ev.PolicyChanged):
            self.policy = event.policy
        decisions = super().tell(event)
        for decision in decisions:
            if isinstance(decision, Record):
                self.disk.write(decision, self.now)
        return decisions

    def die(self, *, left: dict[RunId, str] | None = None) -> None:
        """Kill the daemon, unanswered questions and all, and begin its next life."""
        self._lives += 1
        memory, records = recall(
            self.disk.recover(), self.policy, now=self.now, wall=self.now, left=left
        )
        for record in records:
            self.disk.write(record, self.now)
        ids = RunIds(UUID(int=self._lives))
        self.scheduler = Scheduler(
            self.policy, now=self.now, new_run_id=ids, memory=memory, epoch=EPOCH
        )

    def claim(self, name: str = "a") -> Claim | None:
        """Return an issue's claim."""
        return self.scheduler.snapshot(self.now).claims.get(IssueId(name))

    def holds(self, name: str = "a") -> HoldReason | None:
        """Return why an issue is held, in memory and on disk alike; None where it is not."""
        claim = self.claim(name)
        reason = claim.reason if isinstance(claim, Held) else None
        stored = self.disk.holds.get(IssueId(name))
        assert (stored.reason if stored else None) == reason
        return reason

    def known(self, name: str = "a") -> KnownWorkspace:
        """Return the workspace that an issue has here, if it has one."""
        return KnownWorkspace(
            issue_id=IssueId(name), identifier=issue(name).identifier, host="local", path=f"/{name}"
        )

    def ran_before(self, name: str = "a", *, sessions: int) -> None:
        """Put on record that an issue has a workspace and had so many sessions."""
        run_id, found = RunId("earlier"), issue(name)
        for record in (
            rec.RecordRun(
                run_id=run_id, issue=found, streak=Streak(), host="local", agent=self.policy.agent
            ),
            rec.RecordWorkspace(run_id=run_id, workspace=self.known(name)),
            rec.RecordTurn(run_id=run_id, issue_id=found.id, turn=1, sessions=sessions),
            rec.RecordExit(run_id=run_id, status=RunStatus.SUCCEEDED),
        ):
            self.disk.write(record, self.now)

    def begin(self, name: str = "a", *, turn: int = 1) -> RunId:
        """Start an issue's run, with a workspace, up to a turn; turn 0: none begins."""
        self.start(self.tracker.get(IssueId(name), issue(name)))
        (run_id,) = (c.run_id for c in self.scheduler.snapshot(self.now).worked)
        self.tell(ev.WorkspaceMade(run_id, self.known(name)))
        if turn:
            self.tell(ev.TurnStarted(run_id, turn))
        return run_id
