"""The sink that makes log lines of facts.

Rule 1: a line about a run names its issue too, as long as the run lives.
Rule 2: a failure that repeats itself is a warning the first time and every ``EVERY`` times, and
its end is a line.
"""

from __future__ import annotations

from typing import assert_never

import structlog

from sortie.model import RunId
from sortie.telemetry.facts import (
    AdapterCrashed,
    AgentAnswered,
    AgentLaunched,
    AgentSimulated,
    AgentSpoke,
    CommentCompleted,
    ControlUnavailable,
    DaemonCrashed,
    DaemonStarted,
    DaemonStopped,
    DaemonStopping,
    DaemonWasPaused,
    DispatchDropped,
    Fact,
    HoldEnded,
    HoldRestored,
    HookCompleted,
    HostBack,
    HostGivenUp,
    HostNoticed,
    HostRested,
    HttpAnswered,
    HttpListening,
    IssueHeld,
    IssueMoved,
    IssueReconciled,
    OrphansLeft,
    OrphansReaped,
    OrphansSought,
    PauseChanged,
    PollCompleted,
    RetryScheduled,
    RunFinished,
    RunPhaseChanged,
    RunRecovered,
    RunStarted,
    RunStopping,
    SessionRefused,
    SessionStarted,
    ShortageBegan,
    ShortageEnded,
    StateRestored,
    StatusFileRead,
    StoreFailed,
    StoreRecovered,
    TrackerAsked,
    TransitionCompleted,
    TurnCompleted,
    TurnStarted,
    WaitEnded,
    WorkflowReloaded,
    WorkspaceReady,
    WorkspaceRemoved,
)
from sortie.telemetry.log.daemon_lines import daemon_lines, issue_line
from sortie.telemetry.log.lines import Line, Lines
from sortie.telemetry.log.recurring_lines import RecurringLines
from sortie.telemetry.log.run_lines import run_lines, turn_lines

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class LogSink:
    """Writes the lines of each fact through structlog, as ``configure`` left it."""

    def __init__(self) -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        self._issues: dict[RunId, str] = {}
        self._recurring = RecurringLines()

    def __call__(self, fact: Fact) -> None:
        """Write what a fact has to say."""
        if isinstance(fact, RunStarted):
            self._issues[fact.run_id] = fact.issue.identifier
        for line in self._lines(fact):
            self._write(line)
        if isinstance(fact, RunFinished):
            self._issues.pop(fact.run_id, None)

    def _write(self, line: Line) -> None:
        run = line.values.get("run")
        issue = self._issues.get(RunId(run)) if isinstance(run, str) else None
        bound = {"issue": issue} if issue is not None else {}
        self._log.log(_LEVELS[line.level], line.event, **(bound | dict(line.values)))

    def _lines(self, fact: Fact) -> Lines:
        match fact:
            case (
                PollCompleted()
                | TrackerAsked()
                | StoreFailed()
                | StoreRecovered()
                | TransitionCompleted()
            ):
                return self._recurring.lines(fact)
            case (
                RunStarted()
                | RunPhaseChanged()
                | IssueMoved()
                | WorkspaceReady()
                | RunStopping()
                | RunFinished()
                | RunRecovered()
            ):
                return run_lines(fact)
            case (
                SessionStarted()
                | SessionRefused()
                | TurnStarted()
                | AgentLaunched()
                | AgentAnswered()
                | AgentSpoke()
                | TurnCompleted()
                | StatusFileRead()
            ):
                return turn_lines(fact)
            case (
                IssueReconciled()
                | DispatchDropped()
                | RetryScheduled()
                | WaitEnded()
                | IssueHeld()
                | HoldEnded()
                | HoldRestored()
                | CommentCompleted()
                | HookCompleted()
                | WorkspaceRemoved()
            ):
                return (issue_line(fact),)
            case (
                DaemonStarted()
                | DaemonStopping()
                | DaemonStopped()
                | WorkflowReloaded()
                | PauseChanged()
                | OrphansLeft()
                | OrphansSought()
                | OrphansReaped()
                | StateRestored()
                | AgentSimulated()
                | HttpListening()
                | ControlUnavailable()
                | HostBack()
                | HostNoticed()
                | HostRested()
                | HostGivenUp()
                | HttpAnswered()
                | DaemonCrashed()
                | DaemonWasPaused()
                | ShortageBegan()
                | ShortageEnded()
                | AdapterCrashed()
            ):
                return daemon_lines(fact)
            case _:
                assert_never(fact)
