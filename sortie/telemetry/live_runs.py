"""What each live run is doing now, as its facts tell.

Rule 1: a run is live from RunStarted to RunFinished; facts about any other run are ignored.
Rule 2: what is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sortie.facts import Fact, Phase, RunFact
from sortie.model import NOTHING, UNKNOWN, Activity, Issue, RunId, Spending
from sortie.telemetry import facts

_OF_ALL = (facts.ToolCallStarted, facts.ToolCallEnded, facts.TurnCompleted, facts.AgentUsed)
"""Facts that change a run's details also where they are about another than its agent."""


class RunDetails(Struct, frozen=True, kw_only=True):
    """A live run. ``turn`` is None before its first turn; ``note`` is the last one that its agent
    has left, ``spent`` what it has used so far, ``context_share`` how full its model's context is,
    from 0 to 1, ``tool`` what its agent uses now, and ``activity`` what it has done. ``delivery``
    is the last step of its work to a pull request, and ``reaction`` what of that it answers.
    ``image`` is that of its container, None without one. Times are aware."""

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
    note: str | None = None
    tool: str | None = None
    spent: Spending = NOTHING
    activity: Activity = UNKNOWN
    context_share: float | None = None
    delivery: facts.DeliveryAdvanced | None = None
    reaction: tuple[str, ...] = ()
    image: str | None = None
    image_digest: str | None = None


class _LiveRun:
    """A live run; what has changed is gathered, as it changes far more often than it is shown."""

    __slots__ = ("_details", "changes")

    def __init__(self, details: RunDetails) -> None:
        self._details = details
        self.changes: dict[str, Any] = {}

    def details(self) -> RunDetails:
        """Return it as it stands now."""
        if self.changes:
            self._details = replace(self._details, **self.changes)
            self.changes.clear()
        return self._details


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
        return MappingProxyType({run_id: run.details() for run_id, run in self._runs.items()})

    def __call__(self, fact: Fact) -> None:
        """Note what a fact tells of a live run."""
        if isinstance(fact, facts.AgentSpoke):  # a thousand times as many as of all others
            self._spoke(fact)
        elif not isinstance(fact, RunFact):
            return
        elif isinstance(fact, facts.RunStarted):
            self._runs[fact.run_id] = _LiveRun(_begun(fact, self._clock()))
            if isinstance(fact, facts.RunTakenOver):
                began_at = self._clock() - timedelta(seconds=fact.seconds)
                self._runs[fact.run_id].changes |= {"turn": fact.turn, "started_at": began_at}
        elif isinstance(fact, facts.RunFinished | facts.RunHandedOver):
            self._runs.pop(fact.run_id, None)
        elif (run := self._runs.get(fact.run_id)) is not None:
            run.changes["last_event_at"] = self._clock()
            if fact.role is None or isinstance(fact, _OF_ALL):
                run.changes.update(_changed(fact))

    def _spoke(self, fact: facts.AgentSpoke) -> None:
        if (run := self._runs.get(fact.run_id)) is not None:
            run.changes["last_event_at"] = self._clock()
            if fact.message is not None:
                run.changes["last_message"] = fact.message


def _begun(fact: facts.RunStarted, now: datetime) -> RunDetails:
    return RunDetails(
        run_id=fact.run_id,
        issue=fact.issue,
        attempt=fact.attempt,
        host=fact.host,
        max_turns=fact.max_turns,
        reaction=fact.reaction,
        started_at=now,
        last_event_at=now,
    )


def _changed(fact: RunFact) -> Mapping[str, object]:
    """Return which details of a run are others now."""
    match fact:
        case facts.RunPhaseChanged(phase=phase):
            return {"phase": phase}
        case facts.IssueRead(issue=issue) | facts.RunStopping(issue=issue):
            return {"issue": issue}
        case facts.DeliveryAdvanced():
            return {"delivery": fact}
        case facts.WorkspaceReady(path=path):
            return {"workspace": path}
        case facts.ContainerStarted(image=image, digest=digest):
            return {"image": image, "image_digest": f"sha256:{digest}"}
        case (
            facts.SessionStarted(session_id=session_id) | facts.SessionNamed(session_id=session_id)
        ):
            return {"session_id": session_id or None}
        case facts.TurnBegan(turn=turn, max_turns=max_turns):
            return {"turn": turn, "max_turns": max_turns}
        case facts.ToolCallStarted(tool=tool):
            return {"tool": tool}
        case facts.ToolCallEnded() | facts.TurnCompleted():
            return {"tool": None}
        case facts.AgentNoted(text=text):
            return {"note": text}
        case facts.ActivityChanged(activity=activity):
            return {"activity": activity}
        case (
            facts.AgentUsed(spent=spent, context_share=None)
            | facts.AgentUsed(spent=spent, role=str())
        ):
            return {"spent": spent}
        case facts.AgentUsed(spent=spent, context_share=share):
            return {"spent": spent, "context_share": share}
        case _:
            return {}
