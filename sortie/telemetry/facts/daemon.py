"""Facts about the daemon itself."""

from __future__ import annotations

from dataclasses import dataclass


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
