"""The view of the daemon's state that ``/api/v1/state`` shows, field for field.

Rule 1: what is not known is None, never 0.
Rule 2: times are aware; they leave as RFC 3339 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Literal

from pydantic import PlainSerializer, TypeAdapter, WithJsonSchema
from pydantic_core import PydanticSerializationError

from sortie.dataclass import dataclass
from sortie.model.numbers import number_text
from sortie.model.times import rfc3339
from sortie.web.json_bytes import json_bytes

Time = Annotated[
    datetime,
    PlainSerializer(rfc3339, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowView:
    """WORKFLOW.md; ``errors`` are those of the last reading, while older settings are in force."""

    path: str
    valid: bool
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many issues there are of each kind; ``queued``, ``blocked`` and ``unreadable`` ones are
    in no claim."""

    running: int
    waiting: int
    held: int
    queued: int = 0
    blocked: int = 0
    unreadable: int = 0
    kept: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureView:
    """Why an issue failed last; ``kind`` is that of history, or ``handoff_failed``."""

    kind: str | None
    message: str
    at: Time
    run_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningView:
    """A run under way. ``cost_usd`` is what it cost so far, of which ``estimated_usd`` is reckoned
    from its tokens; ``context_share`` is how full its model's context is, from 0 to 1.
    ``files_modified`` are relative to the workspace, ``tool_uses`` counts the uses of each tool."""

    issue_id: str
    issue_identifier: str
    issue_url: str | None
    title: str
    state: str
    run_id: str
    session_id: str | None
    attempt: int
    turn: int | None
    max_turns: int | None
    phase: str
    host: str
    workspace: str | None
    started_at: Time
    last_event_at: Time
    last_message: str | None
    credits: float | None
    tokens: int | None
    cost_usd: float | None = None
    estimated_usd: float | None = None
    context_share: float | None = None
    tool: str | None = None
    model: str | None = None
    files_modified: tuple[str, ...] | None = None
    files_omitted: bool = False
    tool_uses: Mapping[str, int] | None = None
    last_failure: FailureView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceView:
    """A directory of an issue, and the host that it is on."""

    host: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingView:
    """An issue that waits for its next run or its handoff."""

    issue_id: str
    issue_identifier: str
    title: str = ""
    kind: Literal["retry", "continuation", "handoff"]
    attempt: int
    due_at: Time
    reason: str | None
    last_failure: FailureView | None = None
    workspace: WorkspaceView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldView:
    """A parked issue."""

    issue_id: str
    issue_identifier: str
    title: str = ""
    reason: str
    detail: str
    since: Time
    last_failure: FailureView | None = None
    workspace: WorkspaceView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptWorkspaceView:
    """A workspace that is not removed; ``reason`` says what is in it."""

    host: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptView:
    """A finished issue with workspaces that are not removed.

    They are looked at again at ``next_look_at``, and removed at ``until`` whatever they hold.
    """

    issue_id: str
    issue_identifier: str
    title: str = ""
    workspaces: tuple[KeptWorkspaceView, ...]
    next_look_at: Time
    until: Time


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateView:
    """An issue of the last poll that nothing is done about; ``reason`` says why."""

    issue_id: str
    issue_identifier: str
    title: str = ""
    state: str
    reason: str


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
class BudgetView:
    """What the tracker still lets its credential ask: ``remaining`` of ``limit``, until
    ``resets_at``; ``name`` says what is counted."""

    name: str
    remaining: int | None
    limit: int | None
    resets_at: Time | None

    @property
    def is_low(self) -> bool:
        """Whether less than a tenth is left."""
        if self.remaining is None or self.limit is None:
            return False
        return self.remaining * 10 < self.limit

    @property
    def words(self) -> str:
        """What is left, for people."""
        left = "unknown" if self.remaining is None else number_text(self.remaining)
        limit = "" if self.limit is None else f" of {number_text(self.limit)}"
        until = "" if self.resets_at is None else f" until {self.resets_at:%H:%M:%SZ}"
        return f"{self.name}: {left}{limit} left{until}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerView:
    """What the tracker holds and nobody works on: as of the last answers, the first of each.

    ``rests_until`` is when it may be asked again, and why, where it wants to be left alone.
    """

    unreadable: tuple[str, ...] = ()
    unnamed_states: tuple[UnnamedStateView, ...] = ()
    rests_until: Time | None = None
    rests_because: str | None = None
    budgets: tuple[BudgetView, ...] = ()


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
class SlotsView:
    """Room for runs: ``by_state`` and ``by_host`` tell what is free where a limit is set."""

    total: int
    free: int
    by_state: Mapping[str, int]
    by_host: Mapping[str, int]


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
    """The whole answer."""

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


@cache
def _adapter() -> TypeAdapter[StateView]:
    return TypeAdapter(StateView)


def to_json(state: StateView, only: set[str] | None = None) -> bytes:
    """Write the view, or only these of its fields, as JSON in UTF-8."""
    try:
        return _adapter().dump_json(state, include=only)
    except PydanticSerializationError:  # a lone surrogate, as file names may hold
        return json_bytes(_adapter().dump_python(state, mode="json", include=only))
