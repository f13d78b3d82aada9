"""The port to what survives a restart: runs, retries, holds, pause, history, totals.

Every implementation raises StoreError for a database that cannot be opened, read or written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from sortie.model import (
    NOTHING,
    AgentSession,
    Delivery,
    HoldReason,
    Issue,
    IssueId,
    KnownWorkspace,
    ProcessIdentity,
    RunId,
    Sighting,
    Spending,
    StoreError,
    Streak,
    Trigger,
    WaitKind,
)
from sortie.model.stages import PassedStage
from sortie.model.turns_under_way import TurnUnderWay
from sortie.model.watches import Watch
from sortie.store.history_views import DayRow as DayRow
from sortie.store.history_views import HistoryRow as HistoryRow
from sortie.store.history_views import RuleRow as RuleRow
from sortie.store.history_views import Totals as Totals
from sortie.store.stored_questions import StoredQuestion as StoredQuestion

if TYPE_CHECKING:
    from sortie.scheduler.records import Record, RecordComment


class UnknownRun(StoreError):
    """History was asked to go on from a run that is not recorded."""

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"no run {run_id} is recorded; leave it out to begin with the newest")
        self.run_id = run_id


class RecordRefused(StoreError):
    """A record contradicts what is recorded, or cannot be stored at all: no try will write it."""

    def __init__(self, message: str, record: Record) -> None:
        super().__init__(message)
        self.record = record


class UnfinishedRun(Struct, frozen=True, kw_only=True):
    """A run that was recorded as begun and never as over; it ``began``, and was ``heard_of`` last,
    in Unix seconds. Another daemon can go on with its ``turn``, under way since ``turn_at``; None
    where there is none."""

    run_id: RunId
    issue: Issue
    streak: Streak
    host: str
    process: ProcessIdentity | None
    workspace: str | None
    turns: int
    began: float
    heard_of: float
    turn: TurnUnderWay | None = None
    turn_at: float = 0.0
    spent: Spending = NOTHING


class StoredRetry(Struct, frozen=True, kw_only=True):
    """A wait; it was recorded with ``delay`` seconds and is due at ``due_at`` (Unix seconds)."""

    issue: Issue
    kind: WaitKind
    trigger: Trigger
    streak: Streak
    delay: float
    due_at: float
    tries: int


class StoredHold(Struct, frozen=True, kw_only=True):
    """A hold, in force since ``since`` (Unix seconds); see RecordHold for the rest."""

    issue: Issue
    reason: HoldReason
    detail: str
    since: float
    baseline_final: bool = True
    handoff_state: str | None = None


class StoredCrash(Struct, frozen=True, kw_only=True):
    """An issue that the daemon handled when it crashed, ``times`` in a row."""

    issue: Issue
    times: int


class StoredLimit(Struct, frozen=True, kw_only=True):
    """A usage limit, in force from ``since`` to ``until`` (Unix seconds), which was recorded with
    ``delay`` seconds; see RecordLimit for the rest."""

    account: str
    message: str
    since: float
    until: float
    delay: float
    resets_at: datetime | None
    times: int


class Recovered(Struct, frozen=True, kw_only=True):
    """All that a scheduler needs to go on where an earlier one stopped.

    Runs stand in the order they began, retries in that of ``due_at``, holds in that of ``since``,
    workspaces and crashes in that of the issue's id, comments as they were to be made.
    ``sessions`` count runs in which a turn started; ``agent_sessions`` are the newest known of
    each issue with a workspace. ``unsaved`` is since when workspaces count as unsaved, by host and
    path. ``deliveries`` are those that were cut short, ``rules`` those that decide for issues, and
    ``stages`` what is known of those that they have passed.
    ``spent`` is what counts against an issue's limits, ``days`` what was used on the last days that
    are known.
    """

    unfinished: tuple[UnfinishedRun, ...] = ()
    retries: tuple[StoredRetry, ...] = ()
    holds: tuple[StoredHold, ...] = ()
    paused: bool = False
    sessions: Mapping[IssueId, int] = field(default_factory=dict)
    agent_sessions: Mapping[IssueId, AgentSession] = field(default_factory=dict)
    deliveries: Mapping[IssueId, Delivery] = field(default_factory=dict)
    rules: Mapping[IssueId, str] = field(default_factory=dict)
    stages: Mapping[IssueId, PassedStage] = field(default_factory=dict)
    questions: Mapping[IssueId, StoredQuestion] = field(default_factory=dict)
    watches: tuple[tuple[Issue, Watch], ...] = ()
    spent: Mapping[IssueId, Spending] = field(default_factory=dict)
    days: Mapping[str, Spending] = field(default_factory=dict)
    limits: tuple[StoredLimit, ...] = ()
    workspaces: tuple[KnownWorkspace, ...] = ()
    unsaved: Mapping[tuple[str, str], float] = field(default_factory=dict)
    crashes: tuple[StoredCrash, ...] = ()
    comments: tuple[RecordComment, ...] = ()


class Store(Protocol):
    """A database of one daemon."""

    async def commit(self, records: Sequence[Record], at: float) -> None:
        """Write all records, or none, durably, in their order; ``at`` is Unix seconds.

        Raises RecordRefused for a record of a run that is not under way, for a second run of an
        issue that has one under way, and for a value that cannot be stored. Forgetting what is
        not there is fine.
        """
        ...

    async def recover(self) -> Recovered:
        """Read what an earlier daemon left; call it once, before the first commit."""
        ...

    async def history(
        self,
        *,
        issue: str | None = None,
        limit: int = 100,
        before: RunId | None = None,
        rule: str | None = None,
    ) -> Sequence[HistoryRow]:
        """Return runs, newest first; ``issue`` is an identifier, ``before`` a run to go on from,
        ``rule`` the rule that decided, "" for the top level.

        Raises UnknownRun where ``before`` is not recorded.
        """
        ...

    async def run(self, run_id: RunId) -> HistoryRow | None:
        """Return one run, None where it is not recorded."""
        ...

    async def diff(self, run_id: RunId) -> str | None:
        """Return what a run's work changed against its base, None where it is not recorded."""
        ...

    async def forget_runs(self, before: float, limit: int) -> int:
        """Delete up to ``limit`` runs that ended before ``before`` (Unix seconds), oldest first.

        Returns how many; 0 where none is left. Kept are the newest run of all, and the newest of
        each issue that waits, is held, or has sessions counted or a workspace. The totals stay,
        and so does what was used, by issue and by day.
        """
        ...

    async def totals(self) -> Totals:
        """Sum up all runs, those under way and those forgotten included."""
        ...

    async def spent_on(self, day: str) -> Spending:
        """Return what was used on a day, as 2026-11-22, by all agents."""
        ...

    async def days(self, limit: int) -> Sequence[DayRow]:
        """Return what each agent did and used on the last ``limit`` days with any, newest first."""
        ...

    async def sight(self, digests: Mapping[str, str], at: float) -> Mapping[str, Sighting]:
        """Note each issue's present digest, and return when it was first seen and last changed.

        A crash of the machine, not of the daemon, may lose what was noted last.
        """
        ...

    async def check(self) -> None:
        """Raise StoreError where the database cannot be written now."""
        ...
