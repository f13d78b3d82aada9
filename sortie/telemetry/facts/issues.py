"""Facts about an issue between its runs, and about what is done to it."""

from __future__ import annotations

from dataclasses import dataclass

from sortie.model import HoldReason, Issue, IssueId, RunId, Trigger, WaitKind


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueReconciled:
    """A re-read had a consequence; ``action`` is keep, stop or cleanup."""

    action: str
    issue: Issue
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchDropped:
    """A claimed issue was not started after its re-read; ``outcome`` is dropped or error."""

    issue: Issue
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryScheduled:
    """An issue waits; ``delay`` is in seconds."""

    issue: Issue
    kind: WaitKind
    trigger: Trigger
    attempt: int
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEnded:
    """An issue waits no longer and is not started."""

    issue: Issue
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueHeld:
    """An issue is parked until something changes or a person acts."""

    issue: Issue
    reason: HoldReason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRestored:
    """An issue was parked when the daemon started; ``ways_out`` are what ends that, in words."""

    issue: Issue
    reason: HoldReason
    detail: str
    ways_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldEnded:
    """A hold is over."""

    issue_id: IssueId
    issue_identifier: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCompleted:
    """A hook ended; ``result`` is ok, failed or timeout; ``output`` holds 4 KiB at most."""

    hook: str
    result: str
    seconds: float
    issue_identifier: str
    run_id: RunId | None = None
    status: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionCompleted:
    """An issue was moved, or could not be; ``lifecycle`` is dispatch or handoff, ``result``
    success or error. ``closed``: the tracker took no change of any issue."""

    issue: Issue
    lifecycle: str
    state: str
    result: str
    error: str | None = None
    closed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentCompleted:
    """A comment was made, or could not be; ``lifecycle`` is dispatch, completion or failure."""

    issue: Issue
    lifecycle: str
    result: str
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRemoved:
    """A workspace was removed, or could not be: then ``error`` says why."""

    issue_id: IssueId
    issue_identifier: str
    path: str
    error: str | None = None
