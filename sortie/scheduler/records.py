"""What must be on disk before anything else happens because of it.

Records carry no clock reading: a delay counts in seconds from the commit, and the store adds the
wall-clock time of the commit.
"""

from __future__ import annotations

from datetime import datetime

from sortie.dataclass import dataclass
from sortie.model import (
    NO_SUMMARY,
    Activity,
    ErrorKind,
    HoldReason,
    Issue,
    IssueId,
    KnownWorkspace,
    ProcessIdentity,
    RunId,
    RunStatus,
    RunSummary,
    Spending,
    StopReason,
    Streak,
    Trigger,
    WaitKind,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRun:
    """A run begins; recorded before its worker starts. ``streak.failures`` is its attempt."""

    run_id: RunId
    issue: Issue
    streak: Streak
    host: str
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWorkspace:
    """A run has its workspace; it is known until ForgetWorkspace.

    A directory belongs to one issue: the one that had it last.
    """

    run_id: RunId
    workspace: KnownWorkspace


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordUnsaved:
    """A finished issue's workspace holds work that is nowhere else, as of now; until a run has it
    again."""

    host: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetWorkspace:
    """A workspace was removed, or lost and made anew; no session of its agent's can go on in it."""

    host: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTurn:
    """A turn begins; the run's number of turns becomes ``turn``, and ``sessions`` the issue's
    number of runs in which a turn started."""

    run_id: RunId
    issue_id: IssueId
    turn: int
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetBudget:
    """What counts against an issue's limits begins anew: the number of its runs in which a turn
    started, and what they have used."""

    issue_id: IssueId


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordProcess:
    """A run has a root process."""

    run_id: RunId
    process: ProcessIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSession:
    """The id of a run's agent session is known; a later one replaces it."""

    run_id: RunId
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSpending:
    """A run has used so much since it began. What that is more than recorded before counts for
    its issue, and for the day in force."""

    run_id: RunId
    spent: Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordActivity:
    """What is known of what a run's agent has done; replaces what was recorded before."""

    run_id: RunId
    activity: Activity


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDay:
    """From now on what is used, and which runs end, counts for this day, as 2026-11-22."""

    day: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSessions:
    """The issue's number of runs in which a turn started is this now."""

    issue_id: IssueId
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLimit:
    """The usage limit of an account is reached, ``times`` in a row; replaces what was recorded of
    the account. ``resets_at`` is None where the end is unknown."""

    account: str
    message: str
    delay: float
    resets_at: datetime | None
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetLimit:
    """The usage limit of an account is over."""

    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordExit:
    """A run is over. ``turns`` is what the worker counted; None keeps what is recorded.

    ``stopped_for`` is why Sortie itself had its run cancelled, which is no failure. ``state`` is
    the issue's, None where it is not known better than when the run began."""

    run_id: RunId
    status: RunStatus
    error_kind: ErrorKind | None = None
    error: str | None = None
    turns: int | None = None
    stopped_for: StopReason | None = None
    state: str | None = None
    summary: RunSummary = NO_SUMMARY


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHandoff:
    """An issue stands in the handoff state after its newest run."""

    issue: Issue
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRetry:
    """An issue waits; replaces the issue's earlier retry. ``tries`` counts failed handoffs."""

    issue: Issue
    kind: WaitKind
    trigger: Trigger
    streak: Streak
    delay: float
    tries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRetry:
    """An issue waits no longer."""

    issue_id: IssueId


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHold:
    """An issue is held; replaces the issue's earlier hold. ``issue`` is the baseline against
    which a change of content or state is seen; until ``baseline_final`` the next read of the issue
    replaces it. ``again``: where it is held already, only the baseline becomes another.
    ``handoff_state`` is the state that it could not be moved to, where that is why."""

    issue: Issue
    reason: HoldReason
    detail: str
    baseline_final: bool = True
    again: bool = False
    handoff_state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetHold:
    """An issue is held no longer."""

    issue_id: IssueId


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordComment:
    """A comment is to be made on an issue when a run is over, until ForgetComment.

    The journal makes it of PostComment, so that it is on disk with the exit that it tells of.
    """

    run_id: RunId
    issue: Issue
    lifecycle: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetComment:
    """A comment was made, or cannot be made."""

    run_id: RunId
    lifecycle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCrash:
    """The daemon crashed while it handled this issue; the store counts how often."""

    issue: Issue


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetCrashes:
    """An issue was handled without a crash, or is to be tried anew."""

    issue_id: IssueId


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPause:
    """Dispatch is paused, or no longer paused."""

    paused: bool


Record = (
    RecordRun
    | RecordWorkspace
    | RecordUnsaved
    | ForgetWorkspace
    | RecordTurn
    | ResetBudget
    | RecordSpending
    | RecordActivity
    | RecordDay
    | RecordSessions
    | RecordLimit
    | ForgetLimit
    | RecordProcess
    | RecordSession
    | RecordExit
    | RecordHandoff
    | RecordRetry
    | ForgetRetry
    | RecordHold
    | ForgetHold
    | RecordComment
    | ForgetComment
    | RecordCrash
    | ForgetCrashes
    | RecordPause
)
