"""Facts about a run as a whole."""

from __future__ import annotations

from enum import StrEnum

from sortie.facts.fact import Fact, Level, RunFact, fact, shown_spending
from sortie.model import (
    NO_SUMMARY,
    NOTHING,
    ErrorKind,
    Issue,
    RunStatus,
    RunSummary,
    Spending,
    Stage,
    StopReason,
)
from sortie.model.reviews import ReviewVerdict

_BAD_STATUSES = {RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.STALLED}


class Phase(StrEnum):
    """What a run is busy with."""

    STARTING = "starting"  # transition, comment
    WORKSPACE = "workspace"
    HOOK = "hook"
    SESSION = "session"
    TURN = "turn"
    REREAD = "reread"
    DELIVERY = "delivery"  # commits, checks, push, pull request
    REVIEW = "review"  # a second session judges the work
    ENDING = "ending"


@fact("run.started", "info", hidden=("traced",))
class RunStarted(RunFact, frozen=True, kw_only=True):
    """A run was recorded and its worker started; ``reaction`` is what of its pull request it
    answers, ``rule`` decides for its issue. ``traced``: spans are made of it."""

    issue: Issue
    attempt: int
    host: str
    agent: str
    rule: str = ""
    max_turns: int
    reaction: tuple[str, ...] = ()
    traced: bool = False

    def shown(self) -> dict[str, object]:
        return {"title": self.issue.shown_title} | RunFact.shown(self)


@fact("run.taken_over", "info", hidden=("seconds", "counted"))
class RunTakenOver(RunStarted, frozen=True, kw_only=True):
    """A run that another daemon began goes on here in its turn ``turn``, with its agent. It has
    taken ``seconds`` until now, and ``counted`` is what of this turn's spending is on record."""

    daemon: str
    turn: int
    seconds: float
    counted: Spending = NOTHING


@fact("run.handed_over", "info")
class RunHandedOver(RunFact, frozen=True, kw_only=True):
    """A run is no longer this daemon's: its agent goes on, and the next daemon goes on with it."""

    issue: Issue


@fact("run.phase", "debug")
class RunPhaseChanged(RunFact, frozen=True, kw_only=True):
    """A run is busy with something else now."""

    phase: Phase


@fact("issue.read", "debug")
class IssueRead(RunFact, frozen=True, kw_only=True):
    """A run's issue was read anew, or stands in another state now."""

    issue: Issue

    def shown(self) -> dict[str, object]:
        return RunFact.shown(self) | {"state": self.issue.state}


@fact("workspace.ready", "info")
class WorkspaceReady(RunFact, frozen=True, kw_only=True):
    """A run has its directory."""

    path: str
    created: bool

    @property
    def level(self) -> Level:
        return "info" if self.created else "debug"


@fact("delivery.advanced", "info")
class DeliveryAdvanced(RunFact, frozen=True, kw_only=True):
    """The work of a run has come a step further on its way to a pull request."""

    stage: Stage
    branch: str
    head: str | None = None
    files_changed: int = 0
    added: int = 0
    removed: int = 0
    pull_request: str | None = None


@fact("command.verified", "info")
class CommandVerified(RunFact, frozen=True, kw_only=True):
    """A command of ``verify.commands`` has ended."""

    command: str
    ok: bool
    status: str
    seconds: float


@fact("review.finished", "info")
class ReviewFinished(RunFact, frozen=True, kw_only=True):
    """A second session has judged the work of a run, or gave no verdict, and ``reason`` is why.
    ``round`` counts the reviews of a run from 1."""

    verdict: ReviewVerdict
    commit: str
    agent: str
    round: int
    findings: int
    seconds: float
    model: str | None = None
    reason: str = ""

    @property
    def level(self) -> Level:
        return "warning" if self.verdict is ReviewVerdict.NONE else "info"


@fact("work.rescued", "info")
class WorkRescued(Fact, frozen=True, kw_only=True):
    """Work that was nowhere else was kept in the mirror when its workspace was removed."""

    issue_identifier: str
    refs: tuple[str, ...]


@fact("run.stopping", "info")
class RunStopping(RunFact, frozen=True, kw_only=True):
    """A run is being stopped."""

    issue: Issue
    reason: StopReason


@fact("run.finished", "info", hidden=("spent", "summary"))
class RunFinished(RunFact, frozen=True, kw_only=True):
    """A run is over, its processes are gone and ``after_run`` has run; ``stopped_for`` is why
    Sortie itself had it cancelled, ``summary`` what it has left, ``rule`` decided for it."""

    issue: Issue
    status: RunStatus
    error_kind: ErrorKind | None = None
    error: str | None = None
    turns: int
    seconds: float
    stopped_for: StopReason | None = None
    spent: Spending = NOTHING
    summary: RunSummary = NO_SUMMARY
    rule: str = ""

    def shown(self) -> dict[str, object]:
        return RunFact.shown(self) | shown_spending(self.spent)

    @property
    def level(self) -> Level:
        return "warning" if self.status in _BAD_STATUSES else "info"


@fact(
    "run.interrupted",
    "warning",
    hidden=("host", "attempt", "turns", "began", "heard_of", "traced"),
)
class RunRecovered(RunFact, frozen=True, kw_only=True):
    """A run of an earlier daemon was recorded as interrupted; ``rule`` decided for it.

    It ``began``, and was ``heard_of`` last, in Unix seconds; 0 where that is not known. ``traced``
    is as in RunStarted, by the settings of now.
    """

    issue: Issue
    rule: str = ""
    host: str = ""
    attempt: int = 0
    turns: int = 0
    began: float = 0.0
    heard_of: float = 0.0
    traced: bool = False
