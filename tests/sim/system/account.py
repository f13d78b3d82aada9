"""An account of what the scheduler may do, kept beside it: wait, attempt, hold and budget.

Rule 1: it is drawn up from events and answers alone, never from the scheduler's own memory.
Rule 2: what it says holds over a crash as far as it was committed; ``commit`` marks that point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sortie.model import (
    Failed,
    Finish,
    Finished,
    HoldReason,
    Issue,
    IssueId,
    RunId,
    RunReport,
    StopReason,
    content_of,
    same_state,
    state_key,
)
from sortie.scheduler import Policy, Record
from sortie.scheduler import decisions as do
from sortie.scheduler import records as rec

SHORTAGE_PAUSE = 10.0


def backoff(failures: int, policy: Policy) -> float:
    """Return the seconds to wait after failures in a row."""
    return min(
        (10.0, 20.0, 40.0, 80.0, 160.0, 320.0)[min(failures, 6) - 1], policy.max_retry_backoff
    )


@dataclass(slots=True)
class Standing:
    """How an issue stands: what its next run must find."""

    attempt: int = 0
    interruptions: int = 0
    not_before: float = 0.0


@dataclass(slots=True)
class Ledger:
    """What must survive a crash. ``handoffs`` are issues that a good run earned a handoff, and
    ``tries`` says how often one failed since."""

    standings: dict[IssueId, Standing] = field(default_factory=dict)
    waits: set[IssueId] = field(default_factory=set)
    holds: dict[IssueId, tuple[HoldReason, Issue]] = field(default_factory=dict)
    sessions: dict[IssueId, int] = field(default_factory=dict)
    runs: dict[RunId, IssueId] = field(default_factory=dict)
    handoffs: set[IssueId] = field(default_factory=set)
    tries: dict[IssueId, int] = field(default_factory=dict)
    paused: bool = False

    def copy(self) -> Ledger:
        """Return a ledger that changes on its own."""
        return Ledger(
            standings={i: replace(standing) for i, standing in self.standings.items()},
            waits=set(self.waits),
            holds=dict(self.holds),
            sessions=dict(self.sessions),
            runs=dict(self.runs),
            handoffs=set(self.handoffs),
            tries=dict(self.tries),
            paused=self.paused,
        )


@dataclass(slots=True)
class OpenRun:
    """A run of this life; ``limit`` is how many there might be when it began.

    ``turn`` is the last that began; ``left_at`` is since when its issue is known to be active no
    more. ``may_go_on`` is what the settings of that moment say of the issue as its worker read it
    last; ``stopped_at`` is when a stop was decided upon, and ``told_at`` when its worker was told.
    """

    start: do.StartWorker
    number: int
    limit: int
    stopped: StopReason | None = None
    turn: int = 0
    left_at: float | None = None
    may_go_on: bool | None = None
    stopped_at: float | None = None
    told_at: float | None = None


class Account:
    """The ledger as it stands, ``now``, and as far as it is on disk.

    ``parked`` are the issues of which an operator was told that they are held, with the number of
    states that they had been in by then.
    """

    def __init__(self) -> None:
        self.now = Ledger()
        self._durable = Ledger()
        self.recovering = False
        self.begun = 0
        self.open: dict[RunId, OpenRun] = {}
        self.parked: dict[str, int] = {}

    def commit(self, records: Sequence[Record], asked: Ledger | None = None) -> None:
        """Note that records are on disk, and with them all that was decided so far; ``asked`` is
        the ledger of the moment when they were given to the store, if that is longer ago.

        The record of a crash holds nothing else, and what recovery records nobody decided before.
        That a comment was made is recorded beside what was decided.
        """
        if all(isinstance(record, rec.ForgetComment) for record in records):
            return
        if any(isinstance(record, rec.RecordCrash) for record in records):
            self._rebase(records)
            return
        if self.recovering:
            for record in records:
                if isinstance(record, rec.RecordHold):
                    self.now.holds[record.issue.id] = (record.reason, record.issue)
                    self.now.waits.discard(record.issue.id)
                elif isinstance(record, rec.ForgetHold):
                    self.now.holds.pop(record.issue_id, None)
                elif isinstance(record, rec.ResetBudget):
                    self.now.sessions.pop(record.issue_id, None)
        if asked is None or self.recovering:
            asked = self.now.copy()
        asked.handoffs &= self.now.handoffs  # no crash undoes one that was made since
        self._durable = asked

    def _rebase(self, records: Sequence[Record]) -> None:
        """Compare holds with what a crash left recorded as their baseline."""
        for record in records:
            if isinstance(record, rec.RecordHold) and record.issue.id in self._durable.holds:
                reason, _ = self._durable.holds[record.issue.id]
                self._durable.holds[record.issue.id] = (reason, record.issue)

    def begin_life(self, policy: Policy, now: float, waits: dict[IssueId, float]) -> None:
        """Take over what is on disk; ``waits`` says from when on each waiting issue may run."""
        self.now = ledger = self._durable.copy()
        self.recovering = True
        self.open.clear()
        for issue_id in ledger.runs.values():
            if issue_id in ledger.waits or issue_id in ledger.holds:
                continue
            standing = ledger.standings.setdefault(issue_id, Standing())
            if standing.interruptions:
                attempt = standing.attempt + 1
                ledger.standings[issue_id] = Standing(attempt, 0, now + backoff(attempt, policy))
            else:
                standing.interruptions, standing.not_before = 1, 0.0
            ledger.waits.add(issue_id)
        ledger.runs.clear()
        for issue_id, due_at in waits.items():
            ledger.standings.setdefault(issue_id, Standing()).not_before = due_at

    def start(self, start: do.StartWorker, policy: Policy) -> None:
        """Note that a run was decided upon."""
        self.begun += 1
        self.open[start.run_id] = OpenRun(start, self.begun, policy.max_concurrent_agents)
        self.now.runs[start.run_id] = start.issue.id
        self.now.waits.discard(start.issue.id)
        self.now.standings.setdefault(start.issue.id, Standing()).not_before = 0.0

    def end(self, run_id: RunId, report: RunReport, policy: Policy, now: float) -> None:
        """Note how a run ended, and what its issue's next one must find."""
        run = self.open.pop(run_id)
        issue_id, ledger = run.start.issue.id, self.now
        ledger.runs.pop(run_id, None)
        ledger.tries.pop(issue_id, None)
        standing = ledger.standings[issue_id]
        cancelled = run.stopped not in (None, StopReason.SHUTDOWN)
        match report.end:
            case _ if cancelled:
                ledger.standings.pop(issue_id)
            case Failed(shortage=True):  # nobody's fault: the attempt is made again
                standing.not_before = now + SHORTAGE_PAUSE
            case Failed():
                attempt = standing.attempt + 1
                ledger.standings[issue_id] = Standing(attempt, 0, now + backoff(attempt, policy))
            case Finished(finish=finish):
                ledger.standings[issue_id] = Standing()
                if finish in (Finish.TURNS_USED, Finish.DONE, Finish.REVIEW):
                    ledger.handoffs.add(issue_id)
            case _:
                pass

    def tell_to_stop(self, run_id: RunId, now: float) -> None:
        """Note that a run's worker is told to stop."""
        if (run := self.open.get(run_id)) is not None:
            run.told_at = now

    def told_to_stop(self, run_id: str) -> bool:
        """Tell whether a run's worker was told to stop."""
        run = self.open.get(RunId(run_id))
        return run is not None and run.told_at is not None

    def retried(self, issue_id: IssueId) -> None:
        """Note that an operator made an issue due."""
        self.now.standings[issue_id] = Standing()

    def handed_off(self, issue_id: IssueId) -> None:
        """Note that an issue was moved to the handoff state: no crash undoes that."""
        self.now.handoffs.discard(issue_id)
        self._durable.handoffs.discard(issue_id)

    def forget_idle(self) -> None:
        """Have issues that neither run nor wait begin anew."""
        claimed = self.now.waits | set(self.now.runs.values())
        for issue_id in [i for i in self.now.standings if i not in claimed]:
            del self.now.standings[issue_id]


def unfit(issue: Issue, policy: Policy) -> str | None:
    """Return why no run may be started for an issue that reads so."""
    state = state_key(issue.state)
    if state not in policy.active_states or state in policy.terminal_states:
        return f"its state is {issue.state}"
    if not policy.required_labels <= {state_key(label) for label in issue.labels}:
        return "it lacks a label"
    for blocker in issue.blocked_by:
        if blocker.state is None or state_key(blocker.state) not in policy.terminal_states:
            return f"it is blocked by {blocker.identifier}"
    return None


def may_end(reason: HoldReason, held: Issue, read: Issue | None) -> bool:
    """Tell whether a hold may end because its issue reads so now, or is gone."""
    if read is None or not same_state(held.state, read.state):
        return True
    return reason is not HoldReason.OPERATOR and content_of(held) != content_of(read)
