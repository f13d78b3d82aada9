"""Facts about a run as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sortie.model import ErrorKind, Issue, RunId, RunStatus, StopReason


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
class RunRecovered:
    """A run of an earlier life was recorded as interrupted."""

    run_id: RunId
    issue: Issue
