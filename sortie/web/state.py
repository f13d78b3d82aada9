"""The view of the daemon's state that ``/api/v1/state`` shows, field for field.

Rule: what is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from sortie.web.issue import (
    BudgetView,
    CandidateView,
    HandedOffView,
    HeldView,
    KeptView,
    RunningView,
    WaitingView,
)
from sortie.web.leases import KnownDaemonView, LeaseView
from sortie.web.notifications import NotificationTargetView
from sortie.web.redaction import json_bytes
from sortie.web.times import Time
from sortie.web.watches import WatchedView
from sortie.web.webhooks.views import WebhookView


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowView:
    """WORKFLOW.md; ``errors`` are those of the last reading, while older settings are in force."""

    path: str
    valid: bool
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many issues there are of each kind; ``queued``, ``blocked`` and ``unreadable`` ones are
    in no claim, and ``watched`` ones may be in any."""

    running: int
    waiting: int
    held: int
    queued: int = 0
    blocked: int = 0
    unreadable: int = 0
    kept: int = 0
    watched: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """A remote host: ``used`` of ``slots`` runs are there.

    One that is not ``up`` is in trouble ``since`` when, says why in ``reason``, and gets nothing
    before ``rests_until``; if that has passed, one run to see whether it is well again.
    """

    host: str
    up: bool
    used: int
    slots: int
    since: Time | None
    rests_until: Time | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnnamedStateView:
    """A state that no setting names, with how many ``issues`` stand in it and the first of them;
    ``near`` is a state that is named and looks like it."""

    state: str
    issues: int
    first: str
    near: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerView:
    """What the tracker holds and nobody works on: as of the last answers, the first of each.

    ``rests_until`` is when it may be asked again, and why, where it wants to be left alone.
    ``webhooks`` are its own and those of the forge.
    """

    unreadable: tuple[str, ...] = ()
    unnamed_states: tuple[UnnamedStateView, ...] = ()
    rests_until: Time | None = None
    rests_because: str | None = None
    budgets: tuple[BudgetView, ...] = ()
    webhooks: tuple[WebhookView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLimitView:
    """The usage limit of the agent's account: no run is started before ``until``, and one first
    after that. ``message`` is the agent's, ``resets_at`` None where nobody said when it ends."""

    agent: str
    message: str
    since: Time
    until: Time
    resets_at: Time | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TodayView:
    """What was used on this ``day`` of the zone, and what may be; None is unknown, or no limit.
    ``exhausted`` says that no run is started before midnight."""

    day: str
    timezone: str
    tokens: int | None
    credits: float | None
    cost_usd: float | None
    estimated_usd: float | None
    daily_credits: float | None
    daily_cost_usd: float | None
    exhausted: str | None


NO_DAY = TodayView(
    day="",
    timezone="UTC",
    tokens=None,
    credits=None,
    cost_usd=None,
    estimated_usd=None,
    daily_credits=None,
    daily_cost_usd=None,
    exhausted=None,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSlotsView:
    """The share that a rule has of the slots: its runs use ``used``; ``guaranteed`` ones no other
    rule is given. ``limit`` and ``burst_to`` are None where it has none of its own."""

    rule: str
    used: int
    guaranteed: int
    limit: int | None
    burst_to: int | None

    @property
    def words(self) -> str:
        """What it is, for people."""
        limit = "" if self.limit is None else f" of {self.limit}"
        burst = "" if self.burst_to is None else f", up to {self.burst_to} while there is room"
        kept = f", {self.guaranteed} guaranteed" if self.guaranteed else ""
        return f"{self.rule}: {self.used}{limit}{kept}{burst}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsView:
    """Room for runs: ``by_state`` and ``by_host`` tell what is free where a limit is set, and
    ``by_rule`` what share each rule has, in the order of the rules."""

    total: int
    free: int
    by_state: Mapping[str, int]
    by_host: Mapping[str, int]
    by_rule: tuple[RuleSlotsView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsView:
    """Sums over all runs ever recorded."""

    runs: int
    turns: int
    credits: float | None
    tokens: int | None
    cost_usd: float | None = None
    estimated_usd: float | None = None
    seconds_running: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StateView:
    """The whole answer. ``lease`` is null, and ``daemons`` is empty, where the database is a
    file. ``notifications`` has each target of these."""

    generated_at: Time
    status: Literal["running", "paused", "draining"]
    workflow: WorkflowView
    counts: Counts
    running: tuple[RunningView, ...]
    waiting: tuple[WaitingView, ...]
    held: tuple[HeldView, ...]
    slots: SlotsView
    totals: TotalsView
    queued: tuple[CandidateView, ...] = ()
    blocked: tuple[CandidateView, ...] = ()
    hosts: tuple[HostView, ...] = ()
    tracker: TrackerView = TrackerView()
    usage_limit: UsageLimitView | None = None
    today: TodayView = NO_DAY
    kept: tuple[KeptView, ...] = ()
    handed_off: tuple[HandedOffView, ...] = ()
    watched: tuple[WatchedView, ...] = ()
    lease: LeaseView | None = None
    daemons: tuple[KnownDaemonView, ...] = ()
    notifications: tuple[NotificationTargetView, ...] = ()


def to_json(view: object, only: set[str] | None = None) -> bytes:
    """Write a view, or only these of its fields, as JSON in UTF-8."""
    from pydantic_core import PydanticSerializationError

    kind: Any = type(view)
    adapter = _adapter(kind)
    try:
        written: bytes = adapter.dump_json(view, include=only)
    except PydanticSerializationError:  # a lone surrogate, as file names may hold
        return json_bytes(adapter.dump_python(view, mode="json", include=only))
    return written


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
