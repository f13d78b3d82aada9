"""Witnesses in the world: they see processes, directories, commits and transitions themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import trio

from sortie.facts import Fact
from sortie.model import HoldReason, Issue, IssueId, RunId, RunStatus, StopReason, WaitKind
from sortie.scheduler import Memory, Record, Snapshot
from sortie.scheduler import records as rec
from sortie.scheduler.claims import WORKED, HandingOff, Held, Rechecking, Stopping, Waiting
from sortie.telemetry import facts
from sortie.workspaces import workspace_key
from tests.sim.disk import Disk
from tests.sim.system.account import Account, Ledger, OpenRun
from tests.sim.system.machine import Machine, Process
from tests.sim.system.trace import Trace
from tests.worker.rig import ROOT

HANDOFF_STATE = "Review"
MANY_CRASHES = 2


class Witnesses:
    """See what happens; each broken promise becomes a line in the trace."""

    def __init__(self, machine: Machine, disk: Disk, account: Account, trace: Trace) -> None:
        self._machine = machine
        self._disk = disk
        self._account = account
        self._trace = trace
        self._started: Counter[str] = Counter()
        self._finished: Counter[str] = Counter()
        self._unheard: set[IssueId] = set()  # handed off, and no answer has come

    def process_started(self, process: Process) -> None:
        """See a process that is about to begin."""
        if process.name == "child":
            return
        for other in self._machine.alive:
            if other.issue_id == process.issue_id and other.cookie != process.cookie != "":
                self._trace.wrong(f"two runs at once: {process} beside {other}")
        told = self._account.told_to_stop(process.cookie)
        if told and process.name not in ("after_run", "before_remove"):
            self._trace.wrong(f"{process} starts although its run was told to stop")
        if process.name == "agent":
            self._agent_started(process)

    def _agent_started(self, process: Process) -> None:
        run = self._disk.under_way.get(RunId(process.cookie))
        if run is None or not run.turns:
            self._trace.wrong(f"no record of a run with a turn says why {process} starts")
            return
        if run.issue.id in self._disk.holds:
            self._trace.wrong(f"{process} starts while its issue is held")
        open_runs = {str(run_id): run for run_id, run in self._account.open.items()}
        if process.cookie not in open_runs:
            self._trace.wrong(f"{process} starts for a run that is over")
            return
        alive = {p.cookie for p in self._machine.alive if p.cookie in open_runs}
        alive.add(process.cookie)
        newest = max((open_runs[cookie] for cookie in alive), key=lambda run: run.number)
        if len(alive) > newest.limit:
            self._trace.wrong(f"{len(alive)} runs have processes, of {newest.limit} allowed")

    def directory_removed(self, path: str) -> None:
        """See a directory that is gone now."""
        ours = {known.path for known in self._disk.workspaces.values()}
        ours |= {f"{ROOT}/{_key_of(run)}" for run in self._account.open.values()}
        if path not in ours:
            self._trace.wrong(f"{path} was removed, and nothing on record says that it is ours")
        looked = self._machine.looked.get(path, -1.0)
        for process in self._machine.inside(path):
            if process.cookie or process.identity.started_at < looked:
                self._trace.wrong(f"{path} was removed under {process}")

    def committed(self, records: Sequence[Record], at: float, asked: Ledger | None = None) -> None:
        """See records that are on disk now; for ``asked`` see Account."""
        self._account.commit(records, asked)
        for record in records:
            match record:
                case rec.RecordExit(status=RunStatus.RUNNING):
                    self._trace.wrong("a run was recorded as over and running")
                case rec.ForgetRetry(issue_id=issue_id):  # no handoff is to be made any more
                    self._unheard.discard(issue_id)
                case _:
                    pass

    def transition_made(self, issue: Issue, state: str) -> None:
        """See a transition of ours that had an effect."""
        if state != HANDOFF_STATE:
            if issue.id not in self._account.now.runs.values():
                self._trace.wrong(f"{issue.identifier} is moved to {state} without a run")
            return
        wait = self._disk.retries.get(issue.id)
        if (wait is None or wait.kind is not WaitKind.HANDOFF) and issue.id not in self._disk.holds:
            self._trace.wrong(f"{issue.identifier} is handed off, and nothing on record says so")
        for process in self._machine.alive:
            if process.issue_id == issue.id:
                self._trace.wrong(f"{issue.identifier} is handed off under {process}")
        # One whose answer was lost is made again, where somebody has put the issue back: nobody
        # can tell that from a request that was lost.
        if issue.id not in self._account.now.handoffs | self._unheard:
            self._trace.wrong(f"{issue.identifier} is handed off again, or without a good run")
        self._account.handed_off(issue.id)
        self._unheard.add(issue.id)

    def transition_heard(self, issue: Issue, state: str) -> None:
        """See the answer to a transition of ours come in."""
        if state == HANDOFF_STATE:
            self._unheard.discard(issue.id)

    def told(self, fact: Fact) -> None:
        """See a fact."""
        self._trace.tell("fact", fact)
        match fact:
            case facts.RunStarted(run_id=run_id):
                self._started[run_id] += 1
                if self._disk.run(run_id) is None:
                    self._trace.wrong(f"run {run_id} was started before it was recorded")
            case facts.RunStopping(run_id=run_id):
                if not self._started[run_id]:
                    self._trace.wrong(f"the stop of run {run_id} overtakes its start")
                self._account.tell_to_stop(run_id, trio.current_time())
            case facts.RunFinished(run_id=run_id):
                self._finished[run_id] += 1
                if run_id in self._disk.under_way:
                    self._trace.wrong(f"run {run_id} was finished before that was recorded")
            case _:
                pass

    def life_ended(self, *, killed: bool) -> None:
        """See the end of a life: each run was told of once, at its beginning and at its end."""
        if max(self._started.values(), default=0) > 1 or self._finished - self._started:
            self._trace.wrong(f"runs were told of twice: {self._started} {self._finished}")
        if not killed and self._started != self._finished:
            self._trace.wrong(f"nobody told of the end of {self._started - self._finished}")
        self._started.clear()
        self._finished.clear()

    def forget(self) -> None:
        """Forget the runs that have begun and ended once."""
        over = {run_id for run_id, times in self._finished.items() if times == 1}
        for run_id in over:
            if self._started[run_id] == 1:
                del self._started[run_id], self._finished[run_id]

    def assert_swept(self) -> None:
        """See that nothing is left of earlier lives when a new one begins its work."""
        for process in self._machine.alive:
            if process.cookie:
                self._trace.wrong(f"{process} outlives the recovery")

    def recovered(self, memory: Memory) -> None:
        """See what a new life begins with."""
        self._account.recovering = False
        self.assert_swept()
        for claim in memory.claims:
            tries = self._account.now.tries.get(claim.issue.id, 0)
            if isinstance(claim, HandingOff) and claim.tries != tries:
                self._trace.wrong(f"{tries} handoffs of {claim.issue.identifier} failed: {claim}")
        held = {claim.issue.id for claim in memory.claims if isinstance(claim, Held)}
        crashed = {i for i, crash in self._disk.crashes.items() if crash.times >= MANY_CRASHES}
        if crashed - held:
            self._trace.wrong(f"{crashed - held} crashed the daemon twice and is not held")

    def compare(self, picture: Snapshot) -> None:
        """See that what the scheduler remembers is what a restart would find."""
        waits: dict[IssueId, object] = {}
        held, runs = set(), set()
        for issue_id, claim in picture.claims.items():
            match claim:
                case HandingOff(stopped=True):
                    held.add((issue_id, HoldReason.OPERATOR))
                case HandingOff():
                    waits[issue_id] = (WaitKind.HANDOFF, claim.streak.failures, claim.tries)
                case (Waiting() as wait) | Rechecking(waited=Waiting() as wait):
                    waits[issue_id] = (wait.kind, wait.streak.failures, 0)
                case Held():
                    held.add((issue_id, claim.reason))
                case _ if isinstance(claim, WORKED):
                    runs.add(claim.run_id)
                    if isinstance(claim, Stopping) and claim.reason is StopReason.OPERATOR:
                        held.add((issue_id, HoldReason.OPERATOR))  # before the answer
        disk = self._disk
        retries = disk.retries.items()
        under_way = set(disk.under_way)
        for what, memory, recorded in (
            ("waits", waits, {i: (w.kind, w.streak.failures, w.tries) for i, w in retries}),
            ("holds", held, {(i, hold.reason) for i, hold in disk.holds.items()}),
            ("runs", runs, under_way),
            ("pause", picture.paused, disk.paused),
            ("sessions", self._account.now.sessions, disk.sessions),
        ):
            if memory != recorded:
                self._trace.wrong(f"{what} in memory {memory} and on disk {recorded} differ")


def _key_of(run: OpenRun) -> str:
    return workspace_key(run.start.issue.identifier)
