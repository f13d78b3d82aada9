"""Facts about the daemon itself, its polls, its store and its HTTP server."""

from __future__ import annotations

from collections.abc import Iterable

from sortie.facts.fact import Fact, Level, LogLine, RecurringFailures, fact, line

_LOGGED_BY_ANOTHER_FACT = {"fetch_candidates", "transition", "comment"}


@fact("daemon.started", "info")
class DaemonStarted(Fact, frozen=True, kw_only=True):
    """The daemon is about to make its first poll."""

    version: str
    python_version: str
    workflow: str
    agent: str
    tracker: str


@fact("daemon.stopping", "info")
class DaemonStopping(Fact, frozen=True, kw_only=True):
    """The daemon was asked to stop; ``running`` runs are under way."""

    running: int


@fact("daemon.stopped", "info")
class DaemonStopped(Fact, frozen=True, kw_only=True):
    """The daemon's work is over."""

    reason: str


@fact("daemon.was_paused", "warning")
class DaemonWasPaused(Fact, frozen=True, kw_only=True):
    """The daemon could not act for so many seconds, which count against no limit."""

    seconds: float


@fact("daemon.crashed", "error")
class DaemonCrashed(Fact, frozen=True, kw_only=True):
    """The daemon ends by a bug, or by a shortage that it cannot survive."""

    traceback: str


@fact("adapter.crashed", "error")
class AdapterCrashed(Fact, frozen=True, kw_only=True):
    """An adapter raised what it should not; the traceback is logged."""

    where: str
    traceback: str


@fact("agent.simulated", "warning")
class AgentSimulated(Fact, frozen=True, kw_only=True):
    """The agent's program is a simulator."""

    program: str


@fact("shortage.began", "error")
class ShortageBegan(Fact, frozen=True, kw_only=True):
    """The daemon was refused a resource: files, processes or memory."""

    resource: str
    error: str


@fact("shortage.ended", "info")
class ShortageEnded(Fact, frozen=True, kw_only=True):
    """The daemon is given the resource again."""

    resource: str


@fact("poll.completed", "debug")
class PollCompleted(Fact, frozen=True, kw_only=True):
    """A poll ended; ``result`` is success, error or skipped."""

    result: str
    seconds: float
    candidates: int | None = None
    error: str | None = None

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        if self.result == "success":
            done = {"candidates": self.candidates, "seconds": round(self.seconds, 3)}
            recovered = failures.end("poll", line("info", "poll.recovered"))
            return [line("debug", self.event, **done), *recovered]
        name = "poll.skipped" if self.result == "skipped" else "poll.failed"
        if self.result == "skipped" and self.error is None:
            return [line("debug", name)]
        logged = line("warning", name, error=self.error)
        return [failures.count("poll", logged, f"{self.result}: {self.error}")]


@fact("tracker.answered", "debug")
class TrackerAsked(Fact, frozen=True, kw_only=True):
    """A request to the tracker ended; ``result`` is success or error."""

    operation: str
    result: str
    seconds: float
    error: str | None = None

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        asked, quiet = self.operation, self.operation in _LOGGED_BY_ANOTHER_FACT
        if self.result != "success":
            level: Level = "debug" if quiet else "warning"
            logged = line(level, "tracker.failed", operation=asked, error=self.error)
            return [failures.count(asked, logged, self.error)]
        answered = line("debug", self.event, operation=asked, seconds=round(self.seconds, 3))
        recovered = failures.end(asked, line("info", "tracker.recovered", operation=asked))
        return [answered] if quiet else [answered, *recovered]


@fact("tracker.rests", "warning")
class TrackerPauseBegan(Fact, frozen=True, kw_only=True):
    """The tracker wants to be left alone for ``asked`` seconds, and is for ``seconds``."""

    seconds: float
    asked: float
    error: str


@fact("store.failed", "error")
class StoreFailed(Fact, frozen=True, kw_only=True):
    """Records could not be written; nothing is started until they are."""

    error: str

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        return [failures.count("store", line(self.level, self.event, error=self.error), self.error)]


@fact("store.recovered", "info")
class StoreRecovered(Fact, frozen=True, kw_only=True):
    """Records are being written again, after some could not be."""

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        return failures.end("store", line(self.level, self.event))


@fact("transcripts.failed", "warning")
class TranscriptsFailed(Fact, frozen=True, kw_only=True):
    """Transcripts of runs could not be written or deleted; the runs go on."""

    path: str
    error: str

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        logged = line(self.level, self.event, path=self.path, error=self.error)
        return [failures.count("transcripts", logged, self.error)]


@fact("transcripts.recovered", "info")
class TranscriptsRecovered(Fact, frozen=True, kw_only=True):
    """Transcripts are being written again, after some could not be."""

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        return failures.end("transcripts", line(self.level, self.event))


@fact("transcripts.pruned", "info")
class TranscriptsForgotten(Fact, frozen=True, kw_only=True):
    """So many transcripts were too old, or all together too large; ``bytes`` are left."""

    count: int
    bytes: int


@fact("event_log.gap", "warning")
class EventLogGap(Fact, frozen=True, kw_only=True):
    """So many events are missing in the event log: there was no room for them, or no segment."""

    events: int


@fact("event_log.failed", "warning")
class EventLogFailed(Fact, frozen=True, kw_only=True):
    """Events could not be written or old ones deleted; the work goes on."""

    path: str
    error: str

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        logged = line(self.level, self.event, path=self.path, error=self.error)
        return [failures.count("event_log", logged, self.error)]


@fact("event_log.recovered", "info")
class EventLogRecovered(Fact, frozen=True, kw_only=True):
    """Events are being written again, after some could not be."""

    def log_lines(self, failures: RecurringFailures, /) -> Iterable[LogLine]:
        return failures.end("event_log", line(self.level, self.event))


@fact("event_log.pruned", "info")
class EventLogForgotten(Fact, frozen=True, kw_only=True):
    """So many segments were too old, or all together too large; ``bytes`` are left."""

    count: int
    bytes: int


@fact("workflow.reloaded", "info")
class WorkflowReloaded(Fact, frozen=True, kw_only=True):
    """WORKFLOW.md changed. ``errors`` is empty where it is valid; ``needs_restart`` names the
    changed settings that only a restart can apply."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()

    def log_lines(self, _failures: RecurringFailures, /) -> Iterable[LogLine]:
        warnings = [line("warning", "workflow.warned", warning=text) for text in self.warnings]
        if self.errors:
            errors = [line("error", "workflow.invalid", error=text) for text in self.errors]
            return [*errors, *warnings, line("warning", "workflow.kept", errors=len(errors))]
        logged = [line(self.level, self.event), *warnings]
        if self.needs_restart:
            settings = ", ".join(self.needs_restart)
            logged.append(line("warning", "workflow.restart_needed", settings=settings))
        return logged


@fact("dispatch.paused", "info", hidden=("paused",))
class PauseChanged(Fact, frozen=True, kw_only=True):
    """Dispatch was paused or resumed."""

    paused: bool

    @property
    def event(self) -> str:
        return "dispatch.paused" if self.paused else "dispatch.resumed"


@fact("state.restored", "info")
class StateRestored(Fact, frozen=True, kw_only=True):
    """What an earlier daemon recorded was taken over: so many issues wait or are held, and so many
    runs were interrupted, or go on."""

    interrupted: int
    taken_over: int = 0
    waiting: int
    held: int
    paused: bool


@fact("http.listening", "info")
class HttpListening(Fact, frozen=True, kw_only=True):
    """The HTTP server listens at ``url``."""

    url: str


@fact("http.port_taken", "warning")
class HttpPortTaken(Fact, frozen=True, kw_only=True):
    """The default port was taken; the server listens on another."""

    port: int


@fact("http.answered", "debug")
class HttpAnswered(Fact, frozen=True, kw_only=True):
    """A request was answered; ``route`` is a pattern, never a path with an issue's name."""

    route: str
    status: int


@fact("control.unavailable", "warning")
class ControlUnavailable(Fact, frozen=True, kw_only=True):
    """The file at ``path``, by which commands find this daemon, could not be written."""

    path: str
    error: str


@fact("agents.limited", "info")
class AgentsLimited(Fact, frozen=True, kw_only=True):
    """All agents and hooks together may use so many bytes, and so many threads and processes."""

    memory_bytes: int | None
    tasks: int | None


@fact("service_manager.unreachable", "warning")
class ServiceManagerUnreachable(Fact, frozen=True, kw_only=True):
    """The service manager that started the daemon cannot be reached."""

    socket: str
    error: str
