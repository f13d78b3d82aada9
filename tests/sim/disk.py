"""A disk for the simulated world: what records leave behind, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from sortie.model import IssueId, KnownWorkspace, RunId, RunStatus
from sortie.scheduler import Record
from sortie.scheduler import records as rec
from sortie.store import Recovered, StoredCrash, StoredHold, StoredRetry, UnfinishedRun


@dataclass(slots=True)
class Run:
    """A run's row."""

    record: rec.RecordRun
    status: RunStatus = RunStatus.RUNNING
    turns: int = 0


@dataclass(slots=True)
class Disk:
    """Rows by key; writing checks what a database's constraints would."""

    runs: dict[RunId, Run] = field(default_factory=dict)
    retries: dict[IssueId, StoredRetry] = field(default_factory=dict)
    holds: dict[IssueId, StoredHold] = field(default_factory=dict)
    sessions: dict[IssueId, int] = field(default_factory=dict)
    workspaces: dict[tuple[str, str], KnownWorkspace] = field(default_factory=dict)
    crashes: dict[IssueId, StoredCrash] = field(default_factory=dict)
    paused: bool = False

    def write(self, record: Record, at: float) -> None:
        """Apply one record at Unix time ``at``."""
        match record:
            case rec.RecordRun():
                assert record.run_id not in self.runs, "a run id was used twice"
                self.runs[record.run_id] = Run(record)
            case rec.RecordExit(run_id=run_id, status=status, turns=turns):
                run = self.runs[run_id]
                assert run.status is RunStatus.RUNNING, "a run ended twice"
                run.status = status
                run.turns = run.turns if turns is None else turns
            case rec.RecordTurn(run_id=run_id, issue_id=issue_id, turn=turn, sessions=sessions):
                self.runs[run_id].turns = turn
                self.sessions[issue_id] = sessions
            case rec.ResetSessions(issue_id=issue_id):
                self.sessions.pop(issue_id, None)
            case rec.RecordProcess(run_id=run_id):
                assert run_id in self.runs
            case rec.RecordRetry():
                assert record.delay >= 0
                self.retries[record.issue.id] = StoredRetry(
                    issue=record.issue,
                    kind=record.kind,
                    trigger=record.trigger,
                    streak=record.streak,
                    delay=record.delay,
                    due_at=at + record.delay,
                    tries=record.tries,
                )
            case rec.ForgetRetry(issue_id=issue_id):
                del self.retries[issue_id]
            case rec.RecordHold(issue=issue, settled=settled, again=True):
                if (held := self.holds.get(issue.id)) is not None:
                    self.holds[issue.id] = replace(held, issue=issue, settled=settled)
            case rec.RecordHold(issue=issue, reason=reason, detail=detail, settled=settled):
                self.holds[issue.id] = StoredHold(
                    issue=issue, reason=reason, detail=detail, since=at, settled=settled
                )
            case rec.ForgetHold(issue_id=issue_id):
                del self.holds[issue_id]
            case rec.RecordPause(paused=paused):
                self.paused = paused
            case rec.RecordWorkspace(workspace=workspace):
                self.workspaces[workspace.host, workspace.path] = workspace
            case rec.ForgetWorkspace(host=host, path=path):
                del self.workspaces[host, path]
            case rec.RecordCrash(issue=issue):
                before = self.crashes.get(issue.id)
                times = 1 if before is None else before.times + 1
                self.crashes[issue.id] = StoredCrash(issue=issue, times=times)
            case rec.ForgetCrashes(issue_id=issue_id):
                self.crashes.pop(issue_id, None)
            case _:
                assert_never(record)

    def read(self) -> Recovered:
        """Return all that a new life needs."""
        return Recovered(
            unfinished=tuple(
                UnfinishedRun(
                    run_id=run_id,
                    issue=run.record.issue,
                    streak=run.record.streak,
                    host=run.record.host,
                    process=None,
                    workspace=None,
                    turns=run.turns,
                )
                for run_id, run in self.runs.items()
                if run.status is RunStatus.RUNNING
            ),
            retries=tuple(self.retries.values()),
            holds=tuple(self.holds.values()),
            paused=self.paused,
            sessions=dict(self.sessions),
            workspaces=tuple(self.workspaces.values()),
            crashes=tuple(self.crashes.values()),
        )
