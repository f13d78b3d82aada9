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
class OrphansLeft:
    """Processes of an earlier life could not be ended; the issues of their runs are held."""

    where: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansSought:
    """What so many runs of an earlier life left on a remote host is being looked for."""

    host: str
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRestored:
    """What an earlier life recorded was taken over: so many issues wait or are held."""

    interrupted: int
    waiting: int
    held: int
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRested:
    """A remote host could not be used and is given nothing to do for ``seconds``."""

    host: str
    message: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNoticed:
    """A remote host works, and there is something about it that its operator should mend."""

    host: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostGivenUp:
    """A remote host has been in trouble so long that its issues begin anew on others."""

    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBack:
    """A remote host that was in trouble does its work again."""

    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpListening:
    """The HTTP server listens at ``url``; ``wanted_port`` is the port it would have had, had that
    not been taken."""

    url: str
    wanted_port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlUnavailable:
    """The file at ``path``, by which commands find this daemon, could not be written."""

    path: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswered:
    """A request was answered; ``route`` is a pattern, never a path with an issue's name."""

    route: str
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonWasPaused:
    """The daemon could not act for so many seconds, which count against no limit."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonCrashed:
    """The daemon ends by a bug, or by a shortage that it cannot survive."""

    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortageBegan:
    """The daemon was refused a resource: files, processes or memory."""

    resource: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortageEnded:
    """The daemon is given the resource again."""

    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterCrashed:
    """An adapter raised what it should not; the traceback is logged."""

    where: str
    traceback: str
