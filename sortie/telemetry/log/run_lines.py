"""The lines for facts about a run and its turns, bound to their run."""

from __future__ import annotations

from typing import assert_never

from sortie.model import RunStatus, TurnOutcome
from sortie.telemetry.facts import (
    AgentAnswered,
    AgentLaunched,
    AgentSpoke,
    IssueMoved,
    RunFinished,
    RunPhaseChanged,
    RunRecovered,
    RunStarted,
    RunStopping,
    SessionRefused,
    SessionStarted,
    StatusFileRead,
    TurnCompleted,
    TurnStarted,
    WorkspaceReady,
)
from sortie.telemetry.log.lines import Level, Line, Lines, line, seconds

RunFact = (
    RunStarted
    | RunPhaseChanged
    | IssueMoved
    | WorkspaceReady
    | RunStopping
    | RunFinished
    | RunRecovered
)
TurnFact = (
    SessionStarted
    | SessionRefused
    | TurnStarted
    | AgentLaunched
    | AgentAnswered
    | AgentSpoke
    | TurnCompleted
    | StatusFileRead
)

_BAD_TURNS = {TurnOutcome.FAILED, TurnOutcome.TIMED_OUT, TurnOutcome.STALLED}
_BAD_RUNS = {RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.STALLED}


def run_lines(fact: RunFact) -> Lines:
    """Return the lines for a fact about a run."""
    match fact:
        case RunStarted(run_id=run, issue=issue):
            started = line(
                "info",
                "run.started",
                issue=issue.identifier,
                run=run,
                title=issue.title,
                attempt=fact.attempt,
                host=fact.host,
                agent=fact.agent,
                max_turns=fact.max_turns,
            )
            return (started,)
        case RunPhaseChanged(run_id=run, phase=phase):
            return (line("debug", "run.phase", run=run, phase=phase),)
        case IssueMoved(run_id=run, issue=issue):
            return (
                line("debug", "issue.read", issue=issue.identifier, run=run, state=issue.state),
            )
        case WorkspaceReady(run_id=run, path=path, created=created):
            level: Level = "info" if created else "debug"
            return (line(level, "workspace.ready", run=run, path=path, created=created),)
        case RunStopping(run_id=run, issue=issue, reason=reason):
            return (line("info", "run.stopping", issue=issue.identifier, run=run, reason=reason),)
        case RunFinished():
            return (_finished(fact),)
        case RunRecovered(run_id=run, issue=issue):
            return (line("warning", "run.interrupted", issue=issue.identifier, run=run),)
        case _:
            assert_never(fact)


def turn_lines(fact: TurnFact) -> Lines:
    """Return the lines for a fact about a turn or its agent."""
    match fact:
        case SessionStarted(run_id=run, session_id=session):
            return (line("debug", "session.started", run=run, session=session or None),)
        case SessionRefused(run_id=run, error_kind=kind, error=error):
            return (line("warning", "session.refused", run=run, error_kind=kind, error=error),)
        case TurnStarted(run_id=run, turn=turn, max_turns=most):
            return (line("info", "turn.started", run=run, turn=turn, max_turns=most),)
        case AgentLaunched(run_id=run, turn=turn, process=process, seconds_since_fetch=since):
            launched = line(
                "debug",
                "agent.launched",
                run=run,
                turn=turn,
                pid=process.pid,
                seconds_since_fetch=seconds(since),
            )
            return (launched,)
        case AgentAnswered(run_id=run):
            return (line("debug", "agent.answered", run=run, seconds=seconds(fact.seconds)),)
        case AgentSpoke(run_id=run, lines=count, message=message):
            return (line("debug", "agent.spoke", run=run, lines=count, message=message),)
        case TurnCompleted():
            return _turn(fact)
        case StatusFileRead(run_id=run, word=word, known=True):
            return (line("info", "agent.status", run=run, word=word),)
        case StatusFileRead(run_id=run, word=word):
            return (line("warning", "agent.status_unknown", run=run, word=word),)
        case _:
            assert_never(fact)


def _finished(fact: RunFinished) -> Line:
    return line(
        "warning" if fact.status in _BAD_RUNS else "info",
        "run.finished",
        issue=fact.issue.identifier,
        run=fact.run_id,
        status=fact.status,
        error_kind=fact.error_kind,
        error=fact.error,
        turns=fact.turns,
        seconds=seconds(fact.seconds),
        credits=fact.credits,
    )


def _turn(fact: TurnCompleted) -> Lines:
    bad = fact.outcome in _BAD_TURNS
    ended = line(
        "warning" if bad else "info",
        "turn.completed",
        run=fact.run_id,
        turn=fact.turn,
        outcome=fact.outcome,
        error_kind=fact.error_kind,
        error=fact.error,
        seconds=seconds(fact.seconds),
        credits=fact.credits,
        tokens=fact.tokens,
    )
    said = (
        line("warning", "agent.warned", run=fact.run_id, turn=fact.turn, message=warning)
        for warning in fact.warnings
    )
    return (*said, ended)
