"""What the scheduler takes over from an earlier daemon."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from sortie.model import (
    NOTHING,
    AgentSession,
    Delivery,
    Issue,
    IssueId,
    KnownWorkspace,
    Spending,
)
from sortie.model.asked_questions import AskedQuestion
from sortie.model.stages import PassedStage
from sortie.model.turns_under_way import TurnUnderWay
from sortie.model.watches import Watch
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Held, Running, Waiting
from sortie.scheduler.usage_limits import UsageLimit


class TakenOver(Struct, frozen=True, kw_only=True):
    """A run of another daemon that goes on in its turn ``turn``, in its ``workspace``. ``seconds``
    is how long the run has taken, and ``turn_seconds`` the turn; ``spent`` is on record of it."""

    claim: Running
    turn: TurnUnderWay
    workspace: str
    seconds: float
    turn_seconds: float
    spent: Spending = NOTHING


class Memory(Struct, frozen=True, kw_only=True):
    """What an earlier daemon recorded, as the scheduler takes it over.

    ``spent`` is what issues have used, ``spent_today`` what was used on ``day``, as 2026-11-22.
    ``unsaved`` is since when workspaces count as unsaved, by host and path.
    Runs under way are among the claims only where a command reads the state of another daemon.
    ``rules`` are those that were chosen for issues, by name, "" for the top level.
    ``crashed`` are the issues that were being handled when the daemon crashed. ``comments`` may
    have been made or not; they are nothing to the scheduler. ``taken_over`` are the runs that
    go on.
    """

    claims: tuple[Waiting | HandingOff | Held | Running, ...] = ()
    paused: bool = False
    sessions: dict[IssueId, int] = field(default_factory=dict)
    spent: dict[IssueId, Spending] = field(default_factory=dict)
    day: str = ""
    spent_today: Spending = NOTHING
    limits: tuple[UsageLimit, ...] = ()
    agent_sessions: dict[IssueId, AgentSession] = field(default_factory=dict)
    deliveries: dict[IssueId, Delivery] = field(default_factory=dict)
    rules: dict[IssueId, str] = field(default_factory=dict)
    stages: dict[IssueId, PassedStage] = field(default_factory=dict)
    questions: dict[IssueId, AskedQuestion] = field(default_factory=dict)
    watches: tuple[tuple[Issue, Watch], ...] = ()
    workspaces: tuple[KnownWorkspace, ...] = ()
    unsaved: Mapping[tuple[str, str], float] = field(default_factory=dict)
    crashed: frozenset[IssueId] = frozenset()
    comments: tuple[rec.RecordComment, ...] = ()
    taken_over: tuple[TakenOver, ...] = ()
