"""Everything the scheduler can ask for.

The shell commits the records of all decisions it has in hand, then performs the other decisions
in their order: what is on disk comes before what acts on it. Notes are for people and metrics.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from sortie.dataclass import dataclass
from sortie.model import (
    AgentSession,
    Issue,
    IssueId,
    KeptWorkspace,
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
class Transition:
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
    """Tell the issue's readers how a run ended, and where its work is; nobody waits for it."""

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


@dataclass(frozen=True, slots=True)
class WorkKept:
    """Note: a finished issue's workspace is not removed, for at most so many seconds more."""

    issue: Issue
    kept: KeptWorkspace
    seconds: float


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Note: a re-read issue was kept running, stopped or cleaned up."""

    action: Literal["keep", "stop", "cleanup"]
    issue: Issue
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Note: a chosen issue was not started; ``outcome`` is error where it could not be read."""

    issue: Issue
    outcome: Literal["dropped", "error"]
    reason: str


@dataclass(frozen=True, slots=True)
class WaitOver:
    """Note: an issue waits no longer and will not run because of it."""

    issue: Issue
    reason: str


@dataclass(frozen=True, slots=True)
class HoldOver:
    """Note: an issue is held no longer."""

    issue: Issue
    reason: str


@dataclass(frozen=True, slots=True)
class HostResting:
    """Note: a host is given nothing to do for ``seconds``."""

    host: str
    message: str
    seconds: float


@dataclass(frozen=True, slots=True)
class HostAbandoned:
    """Note: a host has been in trouble for so long that its issues begin anew elsewhere."""

    host: str


@dataclass(frozen=True, slots=True)
class HostRecovered:
    """Note: a host that was in trouble does its work again."""

    host: str


@dataclass(frozen=True, slots=True)
class BudgetLow:
    """Note: of the limit ``key`` not much is left, for an issue, or for this day."""

    key: str
    used: str
    limit: str
    issue: Issue | None = None


@dataclass(frozen=True, slots=True)
class AgentLimited:
    """Note: no run of an agent is started for ``seconds``, as its account's usage limit is reached;
    ``resets_at`` is None where nobody said when that ends."""

    agent: str
    message: str
    seconds: float
    resets_at: datetime | None


@dataclass(frozen=True, slots=True)
class AgentLimitOver:
    """Note: runs of an agent are started again after a usage limit."""

    agent: str
    reason: str


@dataclass(frozen=True, slots=True)
class DayBudgetSpent:
    """Note: this day's limit ``key`` is reached, and no run is started before the next day."""

    key: str
    used: str
    limit: str


Note = (
    Reconciled
    | WorkKept
    | Dropped
    | WaitOver
    | HoldOver
    | HostResting
    | HostAbandoned
    | HostRecovered
    | BudgetLow
    | DayBudgetSpent
    | AgentLimited
    | AgentLimitOver
)
Effect = (
    Poll
    | Refresh
    | StartWorker
    | StopWorker
    | Transition
    | CleanWorkspace
    | PostComment
    | AnswerCommand
)
Decision = Record | Effect | Note
