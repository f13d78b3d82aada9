"""Facts: what happened, as frozen records that the sinks turn into log lines and metrics.

Durations are seconds. A fact never holds a secret or a prompt.
"""

from __future__ import annotations

from sortie.telemetry.facts.daemon import (
    AdapterCrashed,
    ControlUnavailable,
    DaemonCrashed,
    DaemonStarted,
    DaemonStopped,
    DaemonStopping,
    DaemonWasPaused,
    HostBack,
    HostGivenUp,
    HostNoticed,
    HostRested,
    HttpAnswered,
    HttpListening,
    OrphansLeft,
    OrphansReaped,
    OrphansSought,
    PauseChanged,
    PollCompleted,
    ShortageBegan,
    ShortageEnded,
    StateRestored,
    StoreFailed,
    StoreRecovered,
    TrackerAsked,
    WorkflowReloaded,
)
from sortie.telemetry.facts.issues import (
    CommentCompleted,
    DispatchDropped,
    HoldEnded,
    HoldRestored,
    HookCompleted,
    IssueHeld,
    IssueReconciled,
    RetryScheduled,
    TransitionCompleted,
    WaitEnded,
    WorkspaceRemoved,
)
from sortie.telemetry.facts.runs import (
    IssueMoved,
    Phase,
    RunFinished,
    RunPhaseChanged,
    RunRecovered,
    RunStarted,
    RunStopping,
    WorkspaceReady,
)
from sortie.telemetry.facts.turns import (
    AgentAnswered,
    AgentLaunched,
    AgentSimulated,
    AgentSpoke,
    SessionRefused,
    SessionStarted,
    StatusFileRead,
    TurnCompleted,
    TurnStarted,
)

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
    | HoldRestored
    | HookCompleted
    | TransitionCompleted
    | CommentCompleted
    | StatusFileRead
    | WorkspaceRemoved
    | WorkflowReloaded
    | PauseChanged
    | StateRestored
    | StoreFailed
    | StoreRecovered
    | OrphansLeft
    | OrphansSought
    | OrphansReaped
    | RunRecovered
    | AgentSimulated
    | HttpListening
    | ControlUnavailable
    | HostBack
    | HostNoticed
    | HostRested
    | HostGivenUp
    | HttpAnswered
    | DaemonCrashed
    | DaemonWasPaused
    | ShortageBegan
    | ShortageEnded
    | AdapterCrashed
)

__all__ = [
    "AdapterCrashed",
    "AgentAnswered",
    "AgentLaunched",
    "AgentSimulated",
    "AgentSpoke",
    "CommentCompleted",
    "ControlUnavailable",
    "DaemonCrashed",
    "DaemonStarted",
    "DaemonStopped",
    "DaemonStopping",
    "DaemonWasPaused",
    "DispatchDropped",
    "Fact",
    "HoldEnded",
    "HoldRestored",
    "HookCompleted",
    "HostBack",
    "HostGivenUp",
    "HostNoticed",
    "HostRested",
    "HttpAnswered",
    "HttpListening",
    "IssueHeld",
    "IssueMoved",
    "IssueReconciled",
    "OrphansLeft",
    "OrphansSought",
    "OrphansReaped",
    "PauseChanged",
    "Phase",
    "PollCompleted",
    "RetryScheduled",
    "RunFinished",
    "RunPhaseChanged",
    "RunRecovered",
    "RunStarted",
    "RunStopping",
    "SessionRefused",
    "SessionStarted",
    "StatusFileRead",
    "ShortageBegan",
    "ShortageEnded",
    "StateRestored",
    "StoreFailed",
    "StoreRecovered",
    "TrackerAsked",
    "TransitionCompleted",
    "TurnCompleted",
    "TurnStarted",
    "WaitEnded",
    "WorkflowReloaded",
    "WorkspaceReady",
    "WorkspaceRemoved",
]
