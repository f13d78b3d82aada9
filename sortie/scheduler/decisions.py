"""Everything the scheduler can ask for.

The orchestrator commits the records of all decisions that wait, then performs the others in order:
what is on disk comes before what acts on it. Notes are facts for log and metrics.
"""

from __future__ import annotations

from typing import Literal

from sortie import facts
from sortie.dataclass import dataclass
from sortie.model import (
    AgentSession,
    Issue,
    IssueId,
    KnownWorkspace,
    RunId,
    RunReport,
    StopReason,
    Streak,
)
from sortie.scheduler.records import Record


@dataclass(frozen=True, slots=True)
class Poll:
    """Fetch candidates; answer with one CandidatesFetched or PollFailed."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """Re-read these issues; answer with one IssuesRefreshed of the same token."""

    token: int
    ids: frozenset[IssueId]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWorker:
    """Start a worker; answer, sooner or later, with exactly one WorkerExited.

    ``fetched_at`` is when the issue was re-read, in monotonic seconds; ``resume`` is the session
    that the issue's last run had with the same agent on the same host.
    """

    run_id: RunId
    issue: Issue
    streak: Streak
    host: str
    fetched_at: float
    resume: AgentSession | None = None


@dataclass(frozen=True, slots=True)
class StopWorker:
    """Stop a worker. Its WorkerExited still follows."""

    run_id: RunId
    issue: Issue
    reason: StopReason


@dataclass(frozen=True, slots=True)
class HandOff:
    """Hand an issue off; answer with one TransitionAnswered of the same token."""

    token: int
    issue: Issue
    state: str


@dataclass(frozen=True, slots=True)
class CleanWorkspace:
    """Remove the workspaces of a terminal issue; answer with one WorkspaceCleaned.

    One that holds work which is nowhere else is kept, unless it is among ``unsaved_too``.
    """

    issue: Issue
    workspaces: tuple[KnownWorkspace, ...]
    unsaved_too: tuple[KnownWorkspace, ...] = ()


@dataclass(frozen=True, slots=True)
class PostComment:
    """Comment on an issue how a run ended, and where its work is; it has no answer."""

    run_id: RunId
    issue: Issue
    lifecycle: Literal["completion", "failure"]
    report: RunReport
    workspace: KnownWorkspace | None = None


@dataclass(frozen=True, slots=True)
class AnswerCommand:
    """Tell an operator what became of a command, now that it is on record.

    ``unknown``: there is no such issue; ``conflict``: not possible as things stand.
    """

    ask: int
    verdict: Literal["done", "unknown", "conflict"]
    message: str


Note = (
    facts.AgentLimited
    | facts.AgentLimitEnded
    | facts.BudgetRunsLow
    | facts.BudgetSpent
    | facts.DispatchDropped
    | facts.HoldEnded
    | facts.HostBack
    | facts.HostGivenUp
    | facts.HostRested
    | facts.IssueReconciled
    | facts.WaitEnded
    | facts.WorkspaceKept
)
"""Facts that the scheduler alone knows."""

Effect = (
    Poll
    | Refresh
    | StartWorker
    | StopWorker
    | HandOff
    | CleanWorkspace
    | PostComment
    | AnswerCommand
)
Decision = Record | Effect | Note
