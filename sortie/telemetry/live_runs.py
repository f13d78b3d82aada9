"""What each live run is doing now, as its facts tell.

Rule 1: a run is live from RunStarted to RunFinished; facts about any other run are ignored.
Rule 2: what is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from sortie.model import NOTHING, UNKNOWN, Activity, Issue, RunId, Spending
from sortie.telemetry import facts
from sortie.telemetry.facts import Fact, Phase, RunFact


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetails:
    """A live run. ``turn`` is None before its first turn; ``spent`` is what it has used so far,
    ``context_share`` how full its model's context is, from 0 to 1, ``tool`` what its agent uses
    now, and ``activity`` what it has done. Times are aware."""

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
    tool: str | None = None
    spent: Spending = NOTHING
    activity: Activity = UNKNOWN
    context_share: float | None = None


@dataclass(slots=True)
class _LiveRun:
    """A live run; what changes with each chunk of output stands beside the rest."""

    details: RunDetails
    last_event_at: datetime
    last_message: str | None = None


class LiveRuns:
    """A sink that keeps the details of live runs; ``clock`` gives aware wall-clock time."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._runs: dict[RunId, _LiveRun] = {}

    def is_empty(self) -> bool:
        """Tell whether no run is under way."""
        return not self._runs

    def runs(self) -> Mapping[RunId, RunDetails]:
        """Return the live runs as they stand now, oldest first; later facts do not change it."""
        return MappingProxyType(
            {
                run_id: replace(
                    run.details, last_event_at=run.last_event_at, last_message=run.last_message
                )
                for run_id, run in self._runs.items()
            }
        )

    def __call__(self, fact: Fact) -> None:
        """Note what a fact tells of a live run."""
        if not isinstance(fact, RunFact):
            return
        if isinstance(fact, facts.RunStarted):
            now = self._clock()
            self._runs[fact.run_id] = _LiveRun(_begun(fact, now), now)
        elif isinstance(fact, facts.RunFinished):
            self._runs.pop(fact.run_id, None)
        elif (run := self._runs.get(fact.run_id)) is not None:
            run.last_event_at = self._clock()
            if not isinstance(fact, facts.AgentSpoke):
                run.details = _changed(run.details, fact)
            elif fact.message is not None:
                run.last_message = fact.message


def _begun(fact: facts.RunStarted, now: datetime) -> RunDetails:
    return RunDetails(
        run_id=fact.run_id,
        issue=fact.issue,
        attempt=fact.attempt,
        host=fact.host,
        max_turns=fact.max_turns,
        started_at=now,
        last_event_at=now,
    )


def _changed(run: RunDetails, fact: RunFact) -> RunDetails:
    match fact:
        case facts.RunPhaseChanged(phase=phase):
            return replace(run, phase=phase)
        case facts.IssueRead(issue=issue) | facts.RunStopping(issue=issue):
            return replace(run, issue=issue)
        case facts.WorkspaceReady(path=path):
            return replace(run, workspace=path)
        case (
            facts.SessionStarted(session_id=session_id) | facts.SessionNamed(session_id=session_id)
        ):
            return replace(run, session_id=session_id or None)
        case facts.TurnBegan(turn=turn, max_turns=max_turns):
            return replace(run, turn=turn, max_turns=max_turns)
        case facts.ToolCallStarted(tool=tool):
            return replace(run, tool=tool)
        case facts.ToolCallEnded() | facts.TurnCompleted():
            return replace(run, tool=None)
        case facts.ActivityChanged(activity=activity):
            return replace(run, activity=activity)
        case facts.AgentUsed(spent=spent, context_share=None):
            return replace(run, spent=spent)
        case facts.AgentUsed(spent=spent, context_share=share):
            return replace(run, spent=spent, context_share=share)
        case _:
            return run
