"""The tables of the memory store, and what each record changes in them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from sortie.model import (
    ErrorKind,
    IssueId,
    KnownWorkspace,
    ProcessIdentity,
    RunId,
    RunStatus,
    cut,
)
from sortie.scheduler.records import (
    ForgetCrashes,
    ForgetHold,
    ForgetRetry,
    ForgetWorkspace,
    Record,
    RecordCrash,
    RecordExit,
    RecordHold,
    RecordPause,
    RecordProcess,
    RecordRetry,
    RecordRun,
    RecordTurn,
    RecordWorkspace,
    ResetSessions,
)
from sortie.store import RecordRefused, StoredCrash, StoredHold, StoredRetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A recorded run; ``seen_at`` is its last sign of life before its end."""

    begun: RecordRun
    seq: int
    started_at: float
    seen_at: float
    process: ProcessIdentity | None = None
    workspace: str | None = None
    turns: int = 0
    status: RunStatus = RunStatus.RUNNING
    error_kind: ErrorKind | None = None
    error: str | None = None
    credits: float | None = None
    tokens: int | None = None
    finished_at: float | None = None
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class Tables:
    """All that was committed."""

    runs: dict[RunId, Run] = field(default_factory=dict)
    retries: dict[IssueId, StoredRetry] = field(default_factory=dict)
    holds: dict[IssueId, StoredHold] = field(default_factory=dict)
    sessions: dict[IssueId, int] = field(default_factory=dict)
    under_way: dict[IssueId, RunId] = field(default_factory=dict)
    workspaces: dict[tuple[str, str], KnownWorkspace] = field(default_factory=dict)
    crashes: dict[IssueId, StoredCrash] = field(default_factory=dict)
    paused: bool = False
    inherited: int = 0  # the last seq of the life that was recovered
    last_seq: int = 0
    forgotten: list[Run] = field(default_factory=list)  # the totals count them still

    def copy(self) -> Tables:
        """Return tables that change on their own; what is in them is frozen."""
        return replace(
            self,
            runs=dict(self.runs),
            retries=dict(self.retries),
            holds=dict(self.holds),
            sessions=dict(self.sessions),
            workspaces=dict(self.workspaces),
            crashes=dict(self.crashes),
            under_way=dict(self.under_way),
            forgotten=list(self.forgotten),
        )

    def write(self, record: Record, at: float) -> None:
        """Write a record. Raises RecordRefused, and is of no more use then."""
        match record:
            case RecordRun():
                self._begin(record, at)
            case RecordWorkspace(run_id=run_id, workspace=known):
                self._hear_of(record, run_id, at, workspace=known.path)
                self.workspaces[known.host, known.path] = known
            case ForgetWorkspace(host=host, path=path):
                self.workspaces.pop((host, path), None)
            case RecordTurn(run_id=run_id, issue_id=issue_id, turn=turn, sessions=sessions):
                self._hear_of(record, run_id, at, turns=turn)
                self.sessions[issue_id] = sessions
            case ResetSessions(issue_id=issue_id):
                self.sessions.pop(issue_id, None)
            case RecordProcess(run_id=run_id, process=process):
                self._hear_of(record, run_id, at, process=process)
            case RecordExit():
                self._finish(record, at)
            case RecordRetry(issue=issue):
                self.retries[issue.id] = _stored_retry(record, at)
            case ForgetRetry(issue_id=issue_id):
                self.retries.pop(issue_id, None)
            case RecordHold(issue=issue, settled=settled, again=True):
                if (held := self.holds.get(issue.id)) is not None:
                    self.holds[issue.id] = replace(held, issue=issue, settled=settled)
            case RecordHold(issue=issue, reason=reason, detail=detail, settled=settled):
                self.holds[issue.id] = StoredHold(
                    issue=issue, reason=reason, detail=cut(detail), since=at, settled=settled
                )
            case ForgetHold(issue_id=issue_id):
                self.holds.pop(issue_id, None)
            case RecordCrash(issue=issue):
                before = self.crashes.get(issue.id)
                times = 1 if before is None else before.times + 1
                self.crashes[issue.id] = StoredCrash(issue=issue, times=times)
            case ForgetCrashes(issue_id=issue_id):
                self.crashes.pop(issue_id, None)
            case RecordPause(paused=paused):
                self.paused = paused
            case _:
                assert_never(record)

    def forget_runs(self, before: float, limit: int) -> int:
        """Forget runs as ``Store.forget_runs`` says; return how many."""
        order = sorted(self.runs.values(), key=lambda run: (run.started_at, run.seq))
        newest = {(run.begun.issue.id, run.begun.issue.identifier): run.seq for run in order}
        needed = {*self.retries, *self.holds, *self.sessions}
        needed |= {known.issue_id for known in self.workspaces.values()}
        old = [
            run
            for run in order
            if run.finished_at is not None
            and max(run.started_at, run.finished_at) < before
            and run.seq < self.last_seq
            and not (
                run.begun.issue.id in needed
                and run.seq == newest[run.begun.issue.id, run.begun.issue.identifier]
            )
        ][: max(0, limit)]
        for run in old:
            self.forgotten.append(self.runs.pop(run.begun.run_id))
        return len(old)

    def _begin(self, record: RecordRun, at: float) -> None:
        if record.run_id in self.runs or record.issue.id in self.under_way:
            raise RecordRefused(
                f"cannot record run {record.run_id}: it is recorded already, or its issue "
                f"{record.issue.id} has another run under way",
                record,
            )
        self.under_way[record.issue.id] = record.run_id
        self.last_seq += 1
        self.runs[record.run_id] = Run(begun=record, seq=self.last_seq, started_at=at, seen_at=at)

    def _hear_of(self, record: Record, run_id: RunId, at: float, **changes: object) -> None:
        run = self._under_way(record, run_id)
        seen_at = max(run.seen_at, at)
        self.runs[run_id] = replace(run, seen_at=seen_at, **changes)  # type: ignore[arg-type]

    def _finish(self, record: RecordExit, at: float) -> None:
        run = self._under_way(record, record.run_id)
        end = run.seen_at if run.seq <= self.inherited else at
        del self.under_way[run.begun.issue.id]
        self.runs[record.run_id] = replace(
            run,
            status=record.status,
            error_kind=record.error_kind,
            error=None if record.error is None else cut(record.error),
            turns=run.turns if record.turns is None else record.turns,
            credits=record.credits,
            tokens=record.tokens,
            finished_at=at,
            seconds=max(0.0, end - run.started_at),
        )

    def _under_way(self, record: Record, run_id: RunId) -> Run:
        run = self.runs.get(run_id)
        if run is None or run.finished_at is not None:
            raise RecordRefused(
                f"cannot write {type(record).__name__}: no run {run_id} is recorded as under way",
                record,
            )
        return run


def _stored_retry(record: RecordRetry, at: float) -> StoredRetry:
    return StoredRetry(
        issue=record.issue,
        kind=record.kind,
        trigger=record.trigger,
        streak=record.streak,
        delay=record.delay,
        due_at=at + record.delay,
        tries=record.tries,
    )
