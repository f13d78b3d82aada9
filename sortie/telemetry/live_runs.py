"""The board of live runs: what each is doing now, as its facts tell.

Rule 1: a run stands on the board from RunStarted to RunFinished; news of any other run is ignored.
Rule 2: what is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import TypeVar, assert_never

from sortie.model import Issue, RunId
from sortie.telemetry.facts import (
    AgentAnswered,
    AgentLaunched,
    AgentSpoke,
    Fact,
    IssueMoved,
    Phase,
    RunFinished,
    RunPhaseChanged,
    RunStarted,
    RunStopping,
    SessionStarted,
    StatusFileRead,
    TurnCompleted,
    TurnStarted,
    WorkspaceReady,
)

Amount = TypeVar("Amount", int, float)

Sign = (
    RunPhaseChanged
    | IssueMoved
    | WorkspaceReady
    | SessionStarted
    | TurnStarted
    | AgentLaunched
    | AgentAnswered
    | AgentSpoke
    | TurnCompleted
    | RunStopping
    | StatusFileRead
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetails:
    """A live run. ``turn`` is None before its first turn; ``credits`` and ``tokens`` are sums over
    its turns. Times are aware."""

    run_id: RunId
    issue: Issue
    attempt: int
    host: str
    max_turns: int
    started_at: datetime
    last_event_at: datetime
    phase: Phase = Phase.STARTING
    turn: int | None = None
    session_id: str | None = None
    workspace: str | None = None
    last_message: str | None = None
    credits: float | None = None
    tokens: int | None = None


class LiveRuns:
    """A sink that keeps the details of live runs; ``clock`` gives aware wall-clock time."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._runs: dict[RunId, RunDetails] = {}

    def runs(self) -> Mapping[RunId, RunDetails]:
        """Return the live runs as they stand now, oldest first; later facts do not change it."""
        return MappingProxyType(dict(self._runs))

    def __call__(self, fact: Fact) -> None:
        """Note what a fact tells of a live run."""
        match fact:
            case RunStarted(run_id=run):
                now = self._clock()
                self._runs[run] = RunDetails(
                    run_id=run,
                    issue=fact.issue,
                    attempt=fact.attempt,
                    host=fact.host,
                    max_turns=fact.max_turns,
                    started_at=now,
                    last_event_at=now,
                )
            case RunFinished(run_id=run):
                self._runs.pop(run, None)
            case (
                RunPhaseChanged()
                | IssueMoved()
                | WorkspaceReady()
                | SessionStarted()
                | TurnStarted()
                | AgentLaunched()
                | AgentAnswered()
                | AgentSpoke()
                | TurnCompleted()
                | RunStopping()
                | StatusFileRead()
            ):
                details = self._runs.get(fact.run_id)
                if details is not None:
                    noted = _noted(details, fact)
                    self._runs[fact.run_id] = replace(noted, last_event_at=self._clock())
            case _:
                pass  # not about a live run


def _noted(run: RunDetails, fact: Sign) -> RunDetails:
    match fact:
        case RunPhaseChanged(phase=phase):
            return replace(run, phase=phase)
        case IssueMoved(issue=issue) | RunStopping(issue=issue):
            return replace(run, issue=issue)
        case WorkspaceReady(path=path):
            return replace(run, workspace=path)
        case SessionStarted(session_id=session_id):
            return replace(run, session_id=session_id or None)
        case TurnStarted(turn=turn, max_turns=max_turns):
            return replace(run, turn=turn, max_turns=max_turns)
        case AgentSpoke(message=message):
            return run if message is None else replace(run, last_message=message)
        case TurnCompleted(credits=credits_, tokens=tokens):
            return replace(
                run,
                credits=_sum(run.credits, credits_),
                tokens=_sum(run.tokens, tokens),
            )
        case AgentLaunched() | AgentAnswered() | StatusFileRead():
            return run
        case _:
            assert_never(fact)


def _sum(known: Amount | None, more: Amount | None) -> Amount | None:
    if known is None or more is None:
        return more if known is None else known
    return known + more
