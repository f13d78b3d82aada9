"""Facts about an issue between its runs, and about what is done to it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sortie.facts.fact import Fact, Level, LogLine, RecurringFailures, fact, line
from sortie.model import HoldReason, Issue, IssueId, RunId, Trigger, WaitKind


@fact("issue.reconciled", "info")
class IssueReconciled(Fact, frozen=True, kw_only=True):
    """A re-read had a consequence; ``action`` is keep, stop or cleanup."""

    action: str
    issue: Issue
    reason: str = ""

    @property
    def level(self) -> Level:
        return "debug" if self.action == "keep" and not self.reason else "info"


@fact("dispatch.dropped", "info")
class DispatchDropped(Fact, frozen=True, kw_only=True):
    """A claimed issue was not started after its re-read; ``outcome`` is dropped or error."""

    issue: Issue
    outcome: str
    reason: str

    @property
    def level(self) -> Level:
        return "warning" if self.outcome == "error" else "info"


@fact("retry.scheduled", "info")
class RetryScheduled(Fact, frozen=True, kw_only=True):
    """An issue waits; ``delay`` is in seconds."""

    issue: Issue
    kind: WaitKind
    trigger: Trigger
    attempt: int
    delay: float


@fact("wait.ended", "info")
class WaitEnded(Fact, frozen=True, kw_only=True):
    """An issue waits no longer and is not started."""

    issue: Issue
    reason: str


@fact("issue.held", "warning")
class IssueHeld(Fact, frozen=True, kw_only=True):
    """An issue is parked until something changes or a person acts."""

    issue: Issue
    reason: HoldReason
    detail: str = ""

    @property
    def level(self) -> Level:
        return "info" if self.reason is HoldReason.OPERATOR else "warning"


@fact("hold.restored", "warning")
class HoldRestored(Fact, frozen=True, kw_only=True):
    """An issue was parked when the daemon started; ``ways_out`` are what ends that, in words."""

    issue: Issue
    reason: HoldReason
    detail: str = ""
    ways_out: tuple[str, ...]

    @property
    def level(self) -> Level:
        return "info" if self.reason is HoldReason.OPERATOR else "warning"


@fact("hold.ended", "info")
class HoldEnded(Fact, frozen=True, kw_only=True):
    """A hold is over."""

    issue: Issue
    reason: str


@fact("budget.low", "warning")
class BudgetRunsLow(Fact, frozen=True, kw_only=True):
    """Of the limit ``key`` a fifth or less is left, for an issue, or for this day."""

    key: str
    used: str
    limit: str
    issue: Issue | None = None


@fact("budget.spent", "warning")
class BudgetSpent(Fact, frozen=True, kw_only=True):
    """This day's limit ``key`` is reached: no run is started before midnight."""

    key: str
    used: str
    limit: str


@fact("agent.limited", "warning")
class AgentLimited(Fact, frozen=True, kw_only=True):
    """The usage limit of an agent's account is reached, and none of its runs is started for so
    long; ``resets_at`` is None where the end is unknown."""

    agent: str
    error: str
    seconds: float
    resets_at: datetime | None


@fact("agent.limit_over", "info")
class AgentLimitEnded(Fact, frozen=True, kw_only=True):
    """Runs of an agent are started again after a usage limit."""

    agent: str
    reason: str


@fact("hook.completed", "info")
class HookCompleted(Fact, frozen=True, kw_only=True):
    """A hook ended; ``result`` is ok, failed or timeout; ``output`` holds 4 KiB at most."""

    hook: str
    result: str
    seconds: float
    issue_identifier: str
    run_id: RunId | None = None
    status: str = ""
    output: str = ""

    @property
    def level(self) -> Level:
        return "info" if self.result == "ok" else "warning"


@fact("issue.moved", "info", hidden=("result", "closed"))
class TransitionCompleted(Fact, frozen=True, kw_only=True):
    """An issue was moved, or could not be; ``lifecycle`` is dispatch or handoff, ``result``
    success or error. ``closed``: an outage of the tracker, no refusal."""

    issue: Issue
    lifecycle: str
    state: str
    result: str
    error: str | None = None
    closed: bool = False

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        if self.closed:
            closed = line("warning", "tracker.closed", error=self.error)
            # The same for every issue and state, so that an outage is logged once for all of them.
            common = (self.error or "").replace(self.issue.identifier, "").replace(self.state, "")
            return [failures.count("tracker", closed, common)]
        if self.result != "success":
            return [line("warning", "issue.move_failed", **self.shown())]
        moved = line(self.level, self.event, **self.shown())
        return [*failures.end("tracker", line("info", "tracker.reopened")), moved]


@fact("issue.handed_off", "debug")
class IssueHandedOff(Fact, frozen=True, kw_only=True):
    """After a run an issue is in the handoff state; Sortie or the agent has moved it there."""

    issue: Issue
    state: str


@fact("comment.made", "debug", hidden=("result",))
class CommentCompleted(Fact, frozen=True, kw_only=True):
    """A comment was made, or could not be; ``lifecycle`` is dispatch, completion, failure,
    question or agent."""

    issue: Issue
    lifecycle: str
    result: str
    error: str | None = None

    @property
    def event(self) -> str:
        return "comment.made" if self.result == "success" else "comment.failed"

    @property
    def level(self) -> Level:
        return "debug" if self.result == "success" else "warning"


@fact("workspace.kept", "warning")
class WorkspaceKept(Fact, frozen=True, kw_only=True):
    """A finished issue's workspace holds work that is nowhere else, or may hold some; it is removed
    when it does not any more, or after so many seconds."""

    issue_id: IssueId
    issue_identifier: str
    path: str
    host: str
    reason: str
    seconds: float


@fact("workspace.removed", "info")
class WorkspaceRemoved(Fact, frozen=True, kw_only=True):
    """A workspace was removed, or could not be: then ``error`` says why."""

    issue_id: IssueId
    issue_identifier: str
    path: str
    error: str | None = None

    @property
    def event(self) -> str:
        return "workspace.removed" if self.error is None else "workspace.removal_failed"

    @property
    def level(self) -> Level:
        return "info" if self.error is None else "warning"
