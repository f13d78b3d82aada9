"""Everything the outside world can tell the scheduler."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from sortie.model import (
    NOTHING,
    Issue,
    IssueId,
    KeptWorkspace,
    KnownWorkspace,
    Spending,
    TrackerErrorKind,
)
from sortie.model.asked_questions import QuestionAnswer
from sortie.scheduler.grants import SlotsGranted as SlotsGranted
from sortie.scheduler.operator_events import AnswerSent as AnswerSent
from sortie.scheduler.operator_events import PauseAsked as PauseAsked
from sortie.scheduler.operator_events import RefreshRequested as RefreshRequested
from sortie.scheduler.operator_events import RetryAsked as RetryAsked
from sortie.scheduler.operator_events import StopAsked as StopAsked
from sortie.scheduler.policy import Policy
from sortie.scheduler.pull_request_events import ErrandDone as ErrandDone
from sortie.scheduler.pull_request_events import MergeOutcome as MergeOutcome
from sortie.scheduler.pull_request_events import MergeTried as MergeTried
from sortie.scheduler.pull_request_events import PullRequestsSeen as PullRequestsSeen
from sortie.scheduler.run_events import AgentActed as AgentActed
from sortie.scheduler.run_events import AgentCommented as AgentCommented
from sortie.scheduler.run_events import AgentSessionKnown as AgentSessionKnown
from sortie.scheduler.run_events import ContainerMade as ContainerMade
from sortie.scheduler.run_events import DeliveryStepTaken as DeliveryStepTaken
from sortie.scheduler.run_events import IssueMoved as IssueMoved
from sortie.scheduler.run_events import ProcessLaunched as ProcessLaunched
from sortie.scheduler.run_events import SpendingReported as SpendingReported
from sortie.scheduler.run_events import TurnStarted as TurnStarted
from sortie.scheduler.run_events import UsageLimitMet as UsageLimitMet
from sortie.scheduler.run_events import WorkerExited as WorkerExited
from sortie.scheduler.run_events import WorkspaceMade as WorkspaceMade
from sortie.scheduler.turn_records import RunLetGo as RunLetGo
from sortie.scheduler.turn_records import TurnUnderWayKnown as TurnUnderWayKnown
from sortie.scheduler.webhook_events import DeliveriesSeen as DeliveriesSeen


class TimePassed(Struct, frozen=True):
    """The clock reached ``Scheduler.wakeup_at``, or passed it."""


class CandidatesFetched(Struct, frozen=True):
    """A poll succeeded. ``hindrance`` says why no agent could be launched now, if so,
    ``rule_hindrances`` why those of rules could not, and ``shortage`` what this machine is short
    of."""

    issues: tuple[Issue, ...]
    hindrance: str | None = None
    shortage: str | None = None
    rule_hindrances: Mapping[str, str] = field(default_factory=dict)


class PollFailed(Struct, frozen=True):
    """A poll failed; ``skipped`` is True where the tracker was not even asked."""

    error: str
    skipped: bool = False


class TrackerPaused(Struct, frozen=True):
    """The tracker asked not to be sent any request for so many seconds."""

    seconds: float


class PollsPutOff(Struct, frozen=True):
    """Requests are short: the next poll is to be no sooner than in so many seconds."""

    seconds: float


class IssuesRefreshed(Struct, frozen=True):
    """Issues were re-read. One that was asked for and is in neither field is not there;
    ``failed`` holds those that could not be read. Not ``answered``: the tracker gave no answer at
    all. ``answers`` are those to the questions for which the tickets were to be looked at."""

    token: int
    asked: frozenset[IssueId]
    issues: tuple[Issue, ...]
    failed: frozenset[IssueId] = frozenset()
    error: str = ""
    answered: bool = True
    answers: Mapping[IssueId, QuestionAnswer] = field(default_factory=dict)


class WorkspacesMeasured(Struct, frozen=True):
    """The workspaces of a host take so many bytes, by the name of their directory."""

    host: str
    sizes: Mapping[str, int]


class UsageLimitPassed(Struct, frozen=True):
    """The time of day has come at which the usage limit of an account ends."""

    account: str


class TransitionAnswered(Struct, frozen=True):
    """A handoff was tried; ``error_kind`` is None where it succeeded, and ``state`` is the one that
    the issue was to be moved to."""

    issue_id: IssueId
    token: int
    error_kind: TrackerErrorKind | None = None
    error: str = ""
    state: str | None = None


class WorkspaceCleaned(Struct, frozen=True):
    """Workspaces of an issue were removed, all of ``removed``; ``error`` says what could not be,
    and ``kept`` what was left for the work in it."""

    issue_id: IssueId
    removed: tuple[KnownWorkspace, ...]
    error: str | None = None
    kept: tuple[KeptWorkspace, ...] = ()


class PolicyChanged(Struct, frozen=True):
    """WORKFLOW.md was reloaded and is valid."""

    policy: Policy


class HostTroubled(Struct, frozen=True):
    """A host could not be used, and why; it cannot for ``retry_after`` more seconds, if known."""

    host: str
    message: str
    retry_after: float = 0.0


class HostReached(Struct, frozen=True):
    """A host could be used."""

    host: str


class StoreChanged(Struct, frozen=True):
    """Records cannot be written any more, and why; or, with None, they can again."""

    error: str | None


class DayBegan(Struct, frozen=True):
    """By the zone of the settings it is this day now, as 2026-11-22; ``spent`` is what was used on
    it before, where it is not new."""

    day: str
    spent: Spending = NOTHING


class StartsSuspended(Struct, frozen=True):
    """Start no run while there is a ``reason``, a sentence; None: start runs again."""

    reason: str | None


class ShutdownRequested(Struct, frozen=True):
    """Finish: stop every worker and start none."""


Event = (
    TimePassed
    | CandidatesFetched
    | PollFailed
    | TrackerPaused
    | PollsPutOff
    | IssuesRefreshed
    | IssueMoved
    | WorkspaceMade
    | TurnStarted
    | TurnUnderWayKnown
    | RunLetGo
    | ProcessLaunched
    | AgentSessionKnown
    | ContainerMade
    | SpendingReported
    | AgentActed
    | AgentCommented
    | DeliveryStepTaken
    | WorkspacesMeasured
    | UsageLimitMet
    | UsageLimitPassed
    | WorkerExited
    | TransitionAnswered
    | WorkspaceCleaned
    | PullRequestsSeen
    | DeliveriesSeen
    | ErrandDone
    | MergeTried
    | PolicyChanged
    | RefreshRequested
    | PauseAsked
    | StopAsked
    | RetryAsked
    | AnswerSent
    | HostTroubled
    | HostReached
    | StoreChanged
    | SlotsGranted
    | DayBegan
    | StartsSuspended
    | ShutdownRequested
)
