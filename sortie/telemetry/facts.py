"""Facts: what happened, as frozen records that the sinks turn into log lines and metrics.

Durations are seconds. A fact never holds a secret or a prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sortie.model import (
    ErrorKind,
    HoldReason,
    Issue,
    IssueId,
    ProcessIdentity,
    RunId,
    RunStatus,
    StopReason,
    Trigger,
    TurnOutcome,
    WaitKind,
)


class Phase(StrEnum):
    """What a run is busy with."""

    STARTING = "starting"  # transition, comment
    WORKSPACE = "workspace"
    HOOK = "hook"
    SESSION = "session"
    TURN = "turn"
    REREAD = "reread"
    ENDING = "ending"


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStarted:
    """The daemon is about to make its first poll."""

    version: str
    python_version: str
    workflow: str
    agent: str
    tracker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStopping:
    """The daemon was asked to stop; ``running`` runs are under way."""

    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStopped:
    """The daemon's work is over."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PollCompleted:
    """A poll ended; ``result`` is success, error or skipped."""

    result: str
    seconds: float
    candidates: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerAsked:
    """A request to the tracker ended; ``result`` is success or error."""

    operation: str
    result: str
    seconds: float
    error: str | None = None


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
class RunStarted:
    """A run was recorded and its worker started."""

    run_id: RunId
    issue: Issue
    attempt: int
    host: str
    agent: str
    max_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPhaseChanged:
    """A run is busy with something else now."""

    run_id: RunId
    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueMoved:
    """A run's issue stands in another state now, or was read anew."""

    run_id: RunId
    issue: Issue


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceReady:
    """A run has its directory."""

    run_id: RunId
    path: str
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted:
    """The agent accepted a session; ``session_id`` is None where it has none."""

    run_id: RunId
    session_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRefused:
    """The agent accepted no session; ``timed_out``: it did not answer in time."""

    run_id: RunId
    error_kind: ErrorKind
    error: str
    timed_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """A turn's prompt is about to be given to the agent."""

    run_id: RunId
    turn: int
    max_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLaunched:
    """A turn's process runs; ``seconds_since_fetch`` is None but for a run's first turn."""

    run_id: RunId
    turn: int
    process: ProcessIdentity
    seconds_since_fetch: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAnswered:
    """A turn's first byte of output came."""

    run_id: RunId
    agent: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpoke:
    """The agent wrote ``lines`` lines of output; ``message`` is the last of them."""

    run_id: RunId
    agent: str
    lines: int
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted:
    """A turn is over. ``timeout`` is turn, stall or read where one ran out."""

    run_id: RunId
    agent: str
    turn: int
    outcome: TurnOutcome
    seconds: float
    error_kind: ErrorKind | None = None
    error: str | None = None
    credits: float | None = None
    tokens: int | None = None
    warnings: tuple[str, ...] = ()
    timeout: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStopping:
    """A run was told to stop."""

    run_id: RunId
    issue: Issue
    reason: StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """A run is over, its processes are gone and ``after_run`` has run."""

    run_id: RunId
    issue: Issue
    status: RunStatus
    turns: int
    seconds: float
    error_kind: ErrorKind | None = None
    error: str | None = None
    credits: float | None = None


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
    success or error."""

    issue: Issue
    lifecycle: str
    state: str
    result: str
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentCompleted:
    """A comment was made, or could not be; ``lifecycle`` is dispatch, completion or failure."""

    issue: Issue
    lifecycle: str
    result: str
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFileRead:
    """The agent left a word in ``.sortie/status``; ``known`` tells whether it means anything."""

    run_id: RunId
    word: str
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRemoved:
    """A workspace was removed, or could not be: then ``error`` says why."""

    issue_id: IssueId
    issue_identifier: str
    path: str
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowReloaded:
    """WORKFLOW.md changed. ``errors`` is empty where it is valid; ``needs_restart`` names the
    changed settings that only a restart can apply."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseChanged:
    """Dispatch was paused or resumed."""

    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFailed:
    """Records could not be written; nothing is started until they are."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecovered:
    """Records are being written again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansReaped:
    """Processes of runs that are over were ended; ``where`` is local or host."""

    where: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecovered:
    """A run of an earlier life was recorded as interrupted."""

    run_id: RunId
    issue: Issue


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSimulated:
    """The agent's program is a simulator."""

    program: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpListening:
    """The HTTP server listens at ``url``; ``wanted_port`` is the port it would have had, had that
    not been taken."""

    url: str
    wanted_port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswered:
    """A request was answered; ``route`` is a pattern, never a path with an issue's name."""

    route: str
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterCrashed:
    """An adapter raised what it should not; the traceback is logged."""

    where: str
    traceback: str


Fact = (
    DaemonStarted
    | DaemonStopping
    | DaemonStopped
    | PollCompleted
    | TrackerAsked
    | IssueReconciled
    | DispatchDropped
    | RunStarted
    | RunPhaseChanged
    | IssueMoved
    | WorkspaceReady
    | SessionStarted
    | SessionRefused
    | TurnStarted
    | AgentLaunched
    | AgentAnswered
    | AgentSpoke
    | TurnCompleted
    | RunStopping
    | RunFinished
    | RetryScheduled
    | WaitEnded
    | IssueHeld
    | HoldEnded
    | HookCompleted
    | TransitionCompleted
    | CommentCompleted
    | StatusFileRead
    | WorkspaceRemoved
    | WorkflowReloaded
    | PauseChanged
    | StoreFailed
    | StoreRecovered
    | OrphansReaped
    | RunRecovered
    | AgentSimulated
    | HttpListening
    | HttpAnswered
    | AdapterCrashed
)
