"""Everything the scheduler can ask for.

The orchestrator commits the records of all decisions that wait, then performs the others in order:
what is on disk comes before what acts on it. Notes are facts for log and metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct, field

from sortie import facts
from sortie.model import (
    AgentSession,
    Delivery,
    Issue,
    IssueId,
    KnownWorkspace,
    PullRequest,
    RunId,
    RunReport,
    StopReason,
    Streak,
)
from sortie.model.asked_questions import AskedQuestion
from sortie.model.stages import PassedStage
from sortie.model.watches import Errand, Reaction
from sortie.model.webhooks import Part
from sortie.scheduler.memory import TakenOver
from sortie.scheduler.records import Record


class Poll(Struct, frozen=True):
    """Fetch candidates; answer with one CandidatesFetched or PollFailed."""


class Refresh(Struct, frozen=True):
    """Re-read these issues, and look on their tickets for answers to ``questions``; answer with one
    IssuesRefreshed of the same token."""

    token: int
    ids: frozenset[IssueId]
    questions: Mapping[IssueId, AskedQuestion] = field(default_factory=dict)


class StartWorker(Struct, frozen=True, kw_only=True):
    """Start a worker; answer, sooner or later, with exactly one WorkerExited.

    ``fetched_at`` is when the issue was re-read, in monotonic seconds; ``resume`` is the session
    that the issue's last run had with the same agent on the same host, and ``delivery`` what that
    run left half done there. ``reaction`` is what the run is to answer, if anything, and
    ``previous`` the stage that the issue has passed before this one. ``answered`` is the question
    of an earlier run whose answer it takes to the agent, and ``granted`` are the permissions that
    people have given for all of the issue. ``taken_over`` is the run as another
    daemon has left it, which goes on.
    """

    run_id: RunId
    issue: Issue
    streak: Streak
    host: str
    fetched_at: float
    rule: str = ""
    resume: AgentSession | None = None
    delivery: Delivery | None = None
    reaction: Reaction | None = None
    previous: PassedStage | None = None
    answered: AskedQuestion | None = None
    granted: tuple[str, ...] = ()
    taken_over: TakenOver | None = None


class StopWorker(Struct, frozen=True):
    """Stop a worker. Its WorkerExited still follows."""

    run_id: RunId
    issue: Issue
    reason: StopReason


class HandOff(Struct, frozen=True):
    """Hand an issue off; answer with one TransitionAnswered of the same token."""

    token: int
    issue: Issue
    state: str


class CleanWorkspace(Struct, frozen=True):
    """Remove the workspaces of a terminal issue; answer with one WorkspaceCleaned.

    One that holds work which is nowhere else is kept, unless it is among ``unsaved_too``.
    """

    issue: Issue
    workspaces: tuple[KnownWorkspace, ...]
    unsaved_too: tuple[KnownWorkspace, ...] = ()


class PostComment(Struct, frozen=True):
    """Comment on an issue how a run ended, and where its work is; it has no answer."""

    run_id: RunId
    issue: Issue
    lifecycle: Literal["completion", "failure"]
    report: RunReport
    workspace: KnownWorkspace | None = None


class PostAgentComment(Struct, frozen=True):
    """Comment on an issue what its agent wants people to know, the ``number``-th time in its run;
    it has no answer."""

    run_id: RunId
    issue: Issue
    number: int
    text: str


class PostQuestion(Struct, frozen=True):
    """Ask a question on its issue; it has no answer. Its default counts at ``deadline``, None where
    it never does by itself."""

    issue: Issue
    asked: AskedQuestion
    deadline: datetime | None


class LookAtPullRequests(Struct, frozen=True):
    """Look at watched pull requests of one repository, that of ``rule``; answer with one
    PullRequestsSeen of the same token. Of those that deliveries have ``named`` the part is read as
    of now that has changed; ``told``: deliveries are counted on to tell of all other changes."""

    token: int
    pull_requests: Mapping[IssueId, PullRequest]
    rule: str = ""
    named: Mapping[IssueId, Part] = field(default_factory=dict)
    told: bool = False


class RunErrand(Struct, frozen=True):
    """Do something at the forge of ``rule`` or the tracker; answer with one ErrandDone of the same
    token."""

    token: int
    issue: Issue
    pull_request: PullRequest
    errand: Errand
    rule: str = ""


class MergePullRequest(Struct, frozen=True):
    """Merge a pull request at the forge of ``rule`` if all that is required is there at ``head``
    still; answer with one MergeTried of the same token."""

    token: int
    issue: Issue
    pull_request: PullRequest
    head: str
    rule: str = ""


class AnswerCommand(Struct, frozen=True):
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
    | facts.HostPaused
    | facts.IssueReconciled
    | facts.QuestionAsked
    | facts.QuestionAnswered
    | facts.QuestionWithdrawn
    | facts.ReactionPlanned
    | facts.ReactionEnded
    | facts.WatchBegan
    | facts.WatchEnded
    | facts.WebhookFollowed
    | facts.WebhooksArriving
    | facts.WebhooksMissed
    | facts.WebhooksSilent
    | facts.MergeAttempted
    | facts.ErrandFailed
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
    | PostAgentComment
    | PostQuestion
    | LookAtPullRequests
    | RunErrand
    | MergePullRequest
    | AnswerCommand
)
Decision = Record | Effect | Note
