"""The lines for facts about issues between runs, and about the daemon itself."""

from __future__ import annotations

from typing import assert_never

from sortie.model import HoldReason
from sortie.telemetry.facts import (
    AdapterCrashed,
    AgentSimulated,
    CommentCompleted,
    ControlUnavailable,
    DaemonCrashed,
    DaemonStarted,
    DaemonStopped,
    DaemonStopping,
    DaemonWasPaused,
    DispatchDropped,
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
    IssueReconciled,
    OrphansLeft,
    OrphansReaped,
    OrphansSought,
    PauseChanged,
    RetryScheduled,
    ShortageBegan,
    ShortageEnded,
    StateRestored,
    TransitionCompleted,
    WaitEnded,
    WorkflowReloaded,
    WorkspaceRemoved,
)
from sortie.telemetry.log.lines import Level, Line, Lines, line, seconds

IssueFact = (
    IssueReconciled
    | DispatchDropped
    | RetryScheduled
    | WaitEnded
    | IssueHeld
    | HoldEnded
    | HoldRestored
    | TransitionCompleted
    | CommentCompleted
    | HookCompleted
    | WorkspaceRemoved
)
DaemonFact = (
    DaemonStarted
    | DaemonStopping
    | DaemonStopped
    | WorkflowReloaded
    | PauseChanged
    | OrphansLeft
    | OrphansSought
    | OrphansReaped
    | StateRestored
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


def issue_line(fact: IssueFact) -> Line:
    """Return the line for a fact about an issue."""
    match fact:
        case IssueReconciled(action=action, issue=issue, reason=reason):
            level: Level = "debug" if action == "keep" and not reason else "info"
            name = issue.identifier
            return line(level, "issue.reconciled", issue=name, action=action, reason=reason or None)
        case DispatchDropped(issue=issue, outcome=outcome, reason=reason):
            level = "warning" if outcome == "error" else "info"
            name = issue.identifier
            return line(level, "dispatch.dropped", issue=name, outcome=outcome, reason=reason)
        case RetryScheduled(issue=issue):
            return line(
                "info",
                "retry.scheduled",
                issue=issue.identifier,
                kind=fact.kind,
                trigger=fact.trigger,
                attempt=fact.attempt,
                delay=seconds(fact.delay),
            )
        case WaitEnded(issue=issue, reason=reason):
            return line("info", "wait.ended", issue=issue.identifier, reason=reason)
        case IssueHeld(issue=issue, reason=reason, detail=detail):
            level = "info" if reason is HoldReason.OPERATOR else "warning"
            name = issue.identifier
            return line(level, "issue.held", issue=name, reason=reason, detail=detail or None)
        case HoldRestored(issue=issue, reason=reason, detail=detail, ways_out=ways):
            level = "info" if reason is HoldReason.OPERATOR else "warning"
            return line(
                level,
                "hold.restored",
                issue=issue.identifier,
                reason=reason,
                detail=detail or None,
                ends_with="; or ".join(ways),
            )
        case HoldEnded(issue_identifier=name, reason=reason):
            return line("info", "hold.ended", issue=name, reason=reason)
        case TransitionCompleted() | CommentCompleted() | HookCompleted() | WorkspaceRemoved():
            return _effect_line(fact)
        case _:
            assert_never(fact)


def daemon_lines(fact: DaemonFact) -> Lines:
    """Return the lines for a fact about the daemon."""
    match fact:
        case DaemonStarted():
            started = line(
                "info",
                "daemon.started",
                version=fact.version,
                python=fact.python_version,
                workflow=fact.workflow,
                agent=fact.agent,
                tracker=fact.tracker,
            )
            return (started,)
        case DaemonStopping(running=running):
            return (line("info", "daemon.stopping", running=running),)
        case DaemonStopped(reason=reason):
            return (line("info", "daemon.stopped", reason=reason),)
        case WorkflowReloaded():
            return _reload_lines(fact)
        case PauseChanged(paused=paused):
            return (line("info", "dispatch.paused" if paused else "dispatch.resumed"),)
        case OrphansReaped(where=where, count=count):
            level: Level = "warning" if count else "debug"
            return (line(level, "orphans.reaped", where=where, count=count),)
        case OrphansLeft(where=where, error=error):
            return (line("error", "orphans.left", where=where, error=error),)
        case OrphansSought(host=host, runs=runs):
            return (line("info", "orphans.sought", host=host, runs=runs),)
        case StateRestored():
            restored = line(
                "info",
                "state.restored",
                interrupted=fact.interrupted,
                waiting=fact.waiting,
                held=fact.held,
                paused=fact.paused,
            )
            return (restored,)
        case AgentSimulated(program=program):
            return (line("warning", "agent.simulated", program=program),)
        case HostNoticed(host=host, message=message):
            return (line("warning", "host.noticed", host=host, message=message),)
        case HostGivenUp(host=host):
            return (line("warning", "host.given_up", host=host),)
        case HostRested(host=host, message=message, seconds=pause):
            told = line("warning", "host.rested", host=host, error=message, seconds=seconds(pause))
            return (told,)
        case HostBack(host=host):
            return (line("info", "host.back", host=host),)
        case HttpListening(url=url, wanted_port=wanted):
            listening = line("info", "http.listening", url=url)
            if wanted is None:
                return (listening,)
            return (line("warning", "http.port_taken", port=wanted), listening)
        case ControlUnavailable(path=path, error=error):
            return (line("warning", "control.unavailable", path=path, error=error),)
        case HttpAnswered(route=route, status=status):
            return (line("debug", "http.answered", route=route, status=status),)
        case DaemonWasPaused(seconds=paused):
            return (line("warning", "daemon.was_paused", seconds=seconds(paused)),)
        case DaemonCrashed(traceback=traceback):
            return (line("error", "daemon.crashed", traceback=traceback),)
        case ShortageBegan(resource=resource, message=message):
            return (line("error", "shortage.began", resource=resource, error=message),)
        case ShortageEnded(resource=resource):
            return (line("info", "shortage.ended", resource=resource),)
        case AdapterCrashed(where=where, traceback=traceback):
            return (line("error", "adapter.crashed", where=where, traceback=traceback),)
        case _:
            assert_never(fact)


def _effect_line(
    fact: TransitionCompleted | CommentCompleted | HookCompleted | WorkspaceRemoved,
) -> Line:
    match fact:
        case TransitionCompleted(issue=issue, lifecycle=lifecycle, state=state, error=error):
            name = issue.identifier
            if fact.result == "success":
                return line("info", "issue.moved", issue=name, lifecycle=lifecycle, state=state)
            return line(
                "warning",
                "issue.move_failed",
                issue=name,
                lifecycle=lifecycle,
                state=state,
                error=error,
            )
        case CommentCompleted(issue=issue, lifecycle=lifecycle, error=error):
            name = issue.identifier
            if fact.result == "success":
                return line("debug", "comment.made", issue=name, lifecycle=lifecycle)
            return line("warning", "comment.failed", issue=name, lifecycle=lifecycle, error=error)
        case HookCompleted(result=result):
            return line(
                "info" if result == "ok" else "warning",
                "hook.completed",
                issue=fact.issue_identifier,
                run=fact.run_id,
                hook=fact.hook,
                result=result,
                seconds=seconds(fact.seconds),
                status=fact.status or None,
                output=fact.output or None,
            )
        case WorkspaceRemoved(issue_identifier=name, path=path, error=error):
            if error is None:
                return line("info", "workspace.removed", issue=name, path=path)
            return line("warning", "workspace.removal_failed", issue=name, path=path, error=error)
        case _:
            assert_never(fact)


def _reload_lines(fact: WorkflowReloaded) -> Lines:
    warnings = tuple(line("warning", "workflow.warned", warning=text) for text in fact.warnings)
    if fact.errors:
        errors = (line("error", "workflow.invalid", error=text) for text in fact.errors)
        kept = line("warning", "workflow.kept", errors=len(fact.errors))
        return (*errors, *warnings, kept)
    reloaded = line("info", "workflow.reloaded")
    if not fact.needs_restart:
        return (reloaded, *warnings)
    settings = ", ".join(fact.needs_restart)
    return (reloaded, *warnings, line("warning", "workflow.restart_needed", settings=settings))
