"""Records: what must be on disk before a decision that depends on it is performed.

Records carry no clock reading: a delay counts in seconds from the commit, and the store adds the
wall-clock time of the commit.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

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
from sortie.model.stages import PassedStage
from sortie.scheduler.outcome_records import ForgetComment as ForgetComment
from sortie.scheduler.outcome_records import ForgetQuestion as ForgetQuestion
from sortie.scheduler.outcome_records import ForgetWatch as ForgetWatch
from sortie.scheduler.outcome_records import RecordComment as RecordComment
from sortie.scheduler.outcome_records import RecordDelivery as RecordDelivery
from sortie.scheduler.outcome_records import RecordHandoff as RecordHandoff
from sortie.scheduler.outcome_records import RecordNotification as RecordNotification
from sortie.scheduler.outcome_records import RecordQuestion as RecordQuestion
from sortie.scheduler.outcome_records import RecordWatch as RecordWatch
from sortie.scheduler.outcome_records import SettleDelivery as SettleDelivery
from sortie.scheduler.turn_records import RecordTakeOver as RecordTakeOver
from sortie.scheduler.turn_records import RecordTurnUnderWay as RecordTurnUnderWay


class RecordRun(Struct, frozen=True, kw_only=True):
    """A run begins; recorded before its worker starts. ``streak.failures`` is its attempt, ``rule``
    the rule that decides for its issue."""

    run_id: RunId
    issue: Issue
    streak: Streak
    host: str
    agent: str
    rule: str = ""


class RecordWorkspace(Struct, frozen=True, kw_only=True):
    """A run has its workspace, known until ForgetWorkspace, of the issue that had it last."""

    run_id: RunId
    workspace: KnownWorkspace


class RecordUnsaved(Struct, frozen=True, kw_only=True):
    """A finished issue's workspace holds work that is nowhere else, as of now; until a run has it
    again."""

    host: str
    path: str


class ForgetWorkspace(Struct, frozen=True, kw_only=True):
    """A workspace was removed, or lost and recreated; no agent session can be resumed in it."""

    host: str
    path: str


class RecordTurn(Struct, frozen=True, kw_only=True):
    """A turn begins; the run's number of turns becomes ``turn``, and ``sessions`` the issue's
    number of runs in which a turn started."""

    run_id: RunId
    issue_id: IssueId
    turn: int
    sessions: int


class RecordRule(Struct, frozen=True, kw_only=True):
    """A rule decides for an issue, "" is the top level; until ForgetRule."""

    issue_id: IssueId
    rule: str


class ForgetRule(Struct, frozen=True, kw_only=True):
    """An issue is neither claimed nor watched any more; a rule is chosen anew for it."""

    issue_id: IssueId


class RecordStage(Struct, frozen=True, kw_only=True):
    """What is known of the stages of an issue; replaces what was recorded before."""

    issue_id: IssueId
    passed: PassedStage


class ForgetStages(Struct, frozen=True, kw_only=True):
    """An issue is finished; nothing of its stages is needed any more."""

    issue_id: IssueId


class ResetBudget(Struct, frozen=True, kw_only=True):
    """What counts against an issue's limits begins anew: its runs, and what they have used."""

    issue_id: IssueId


class RecordProcess(Struct, frozen=True, kw_only=True):
    """A run has a root process."""

    run_id: RunId
    process: ProcessIdentity


class RecordSession(Struct, frozen=True, kw_only=True):
    """The id of a run's agent session is known; a later one replaces it."""

    run_id: RunId
    session_id: str


class RecordImage(Struct, frozen=True, kw_only=True):
    """A run's programs are in a container of this image; ``digest`` is the image's."""

    run_id: RunId
    image: str
    digest: str


class RecordSpending(Struct, frozen=True, kw_only=True):
    """A run has used so much since it began. What that is more than recorded before counts for
    its issue, and for the day in force."""

    run_id: RunId
    spent: Spending


class RecordActivity(Struct, frozen=True, kw_only=True):
    """What is known of what a run's agent has done; replaces what was recorded before."""

    run_id: RunId
    activity: Activity


class RecordDay(Struct, frozen=True, kw_only=True):
    """From now on what is used, and which runs end, counts for this day, as 2026-11-22."""

    day: str


class RecordSessions(Struct, frozen=True, kw_only=True):
    """The issue's number of runs in which a turn started is this now."""

    issue_id: IssueId
    sessions: int


class RecordLimit(Struct, frozen=True, kw_only=True):
    """The usage limit of an account is reached, ``times`` in a row; replaces what was recorded of
    the account. ``resets_at`` is None where the end is unknown."""

    account: str
    message: str
    delay: float
    resets_at: datetime | None
    times: int


class ForgetLimit(Struct, frozen=True, kw_only=True):
    """The usage limit of an account is over."""

    account: str


class RecordExit(Struct, frozen=True, kw_only=True):
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


class RecordRetry(Struct, frozen=True, kw_only=True):
    """An issue waits; replaces the issue's earlier retry. ``tries`` counts failed handoffs."""

    issue: Issue
    kind: WaitKind
    trigger: Trigger
    streak: Streak
    delay: float
    tries: int = 0


class ForgetRetry(Struct, frozen=True, kw_only=True):
    """An issue waits no longer."""

    issue_id: IssueId


class RecordHold(Struct, frozen=True, kw_only=True):
    """An issue is held; replaces the issue's earlier hold. ``issue`` is the baseline against
    which a change of content or state is seen; until ``baseline_final`` the next read of the issue
    replaces it. ``again``: where it is held already, only the baseline becomes another.
    ``handoff_state`` is the one in force where the issue could not be moved, and that is why."""

    issue: Issue
    reason: HoldReason
    detail: str
    baseline_final: bool = True
    again: bool = False
    handoff_state: str | None = None


class ForgetHold(Struct, frozen=True, kw_only=True):
    """An issue is held no longer."""

    issue_id: IssueId


class RecordCrash(Struct, frozen=True, kw_only=True):
    """The daemon crashed while it handled this issue; the store counts how often."""

    issue: Issue


class ForgetCrashes(Struct, frozen=True, kw_only=True):
    """An issue was handled without a crash, or is to be tried anew."""

    issue_id: IssueId


class RecordPause(Struct, frozen=True, kw_only=True):
    """Dispatch is paused, or no longer paused."""

    paused: bool


Record = (
    RecordRun
    | RecordRule
    | ForgetRule
    | RecordStage
    | ForgetStages
    | RecordWorkspace
    | RecordUnsaved
    | ForgetWorkspace
    | RecordTurn
    | RecordTurnUnderWay
    | RecordTakeOver
    | ResetBudget
    | RecordSpending
    | RecordActivity
    | RecordDay
    | RecordSessions
    | RecordLimit
    | ForgetLimit
    | RecordProcess
    | RecordSession
    | RecordImage
    | RecordExit
    | RecordDelivery
    | SettleDelivery
    | RecordWatch
    | ForgetWatch
    | RecordHandoff
    | RecordRetry
    | ForgetRetry
    | RecordHold
    | ForgetHold
    | RecordQuestion
    | ForgetQuestion
    | RecordComment
    | ForgetComment
    | RecordNotification
    | RecordCrash
    | ForgetCrashes
    | RecordPause
)
