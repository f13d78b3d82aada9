"""The views of one issue: its entries in the state, its explanation, and what is recorded of it.

Rule 1: what is not known is None, never 0.
Rule 2: times are aware; they are written as RFC 3339 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sortie.model.numbers import number_text
from sortie.web.deliveries import DeliveryView
from sortie.web.runs import RunView
from sortie.web.times import Time
from sortie.web.watches import GateAnswer, WatchView


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
    from its tokens; ``context_share`` is how full its model's context is, from 0 to 1. ``note`` is
    the last line that its agent has left for people. ``files_modified`` are relative to the
    workspace, ``tool_uses`` counts the uses of each tool. ``delivery`` is how far its work has come
    on ``branch``, and ``pull_request`` an address. ``reaction`` are the kinds of what it answers of
    its pull request, and ``rule`` decided for it, None is the top level of the settings. ``image``
    is that of its container, None without one."""

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
    rule: str | None = None
    context_share: float | None = None
    note: str | None = None
    tool: str | None = None
    model: str | None = None
    files_modified: tuple[str, ...] | None = None
    files_omitted: bool = False
    tool_uses: Mapping[str, int] | None = None
    branch: str | None = None
    delivery: str | None = None
    pull_request: str | None = None
    reaction: tuple[str, ...] = ()
    image: str | None = None
    image_digest: str | None = None
    last_failure: FailureView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceView:
    """A directory of an issue, and the host that it is on."""

    host: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingView:
    """An issue that waits for its next run or its handoff; ``rule`` decides for it, None is the top
    level of the settings."""

    issue_id: str
    issue_identifier: str
    title: str = ""
    kind: Literal["retry", "continuation", "handoff"]
    attempt: int
    due_at: Time
    reason: str | None
    last_failure: FailureView | None = None
    workspace: WorkspaceView | None = None
    rule: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionView:
    """A question that waits for an answer, known by the run that asked it. ``default`` counts at
    ``deadline``, null where it never does by itself. ``wants_option``: only one of the ``options``
    is an answer."""

    id: str
    text: str
    options: tuple[str, ...]
    default: str | None
    asked_at: Time
    deadline: Time | None
    wants_option: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldView:
    """A parked issue; ``rule`` decides for it, None is the top level of the settings. ``question``
    is what it is held for, null where that is something else."""

    issue_id: str
    issue_identifier: str
    title: str = ""
    reason: str
    detail: str
    since: Time
    last_failure: FailureView | None = None
    workspace: WorkspaceView | None = None
    rule: str | None = None
    question: QuestionView | None = None


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
    """An issue of the last poll that nothing is done about; ``reason`` says why.
    ``rule`` decides for it, None is the top level of the settings."""

    issue_id: str
    issue_identifier: str
    title: str = ""
    state: str
    reason: str
    rule: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOffView:
    """An issue that was handed off lately and may await a review: its branch, how much that changes
    against its base, and the address of the pull request; ``run_id`` is its last run."""

    issue_identifier: str
    title: str | None
    state: str | None
    at: Time
    run_id: str | None
    branch: str | None
    files_changed: int | None
    added: int | None
    removed: int | None
    pull_request: str | None


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
class ExplanationView:
    """How one issue stands and why.

    ``standing`` is one word and ``detail`` the sentence that goes with it; ``since`` is when that
    began, where known. ``next_run_at`` is None where no time is known; ``next_step`` says what
    must happen before the issue runs. ``ways_out`` tell what a person can do. ``budgets`` are what
    the tracker still lets Sortie ask. ``description`` is the issue's, cut where it is long.
    ``delivery`` is what became of the work of its last run that had any, and ``watch`` is about its
    pull request, if that is watched; of one with the standing ``watched``, gates are those of the
    merge and ``next_run_at`` is the next look. ``rule`` decides for it, None is the top level of
    the settings; ``passed_over`` say why each rule before that one does not. ``question`` waits for
    an answer, null where none does.
    """

    issue_id: str
    issue_identifier: str
    title: str
    state: str
    standing: Literal[
        "candidate",
        "starting",
        "running",
        "stopping",
        "waiting",
        "handing_off",
        "held",
        "cleaning",
        "watched",
    ]
    detail: str
    since: Time | None
    run_id: str | None
    turn: int | None
    attempt: int | None
    gates: tuple[GateAnswer, ...]
    next_run_at: Time | None
    next_step: str
    ways_out: tuple[str, ...]
    last_failure: FailureView | None = None
    budgets: tuple[BudgetView, ...] = ()
    issue_url: str | None = None
    labels: tuple[str, ...] = ()
    description: str = ""
    workspace: WorkspaceView | None = None
    delivery: DeliveryView | None = None
    watch: WatchView | None = None
    rule: str | None = None
    passed_over: tuple[str, ...] = ()
    question: QuestionView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueView:
    """An issue by its identifier or id.

    ``standing`` and ``detail`` are as in its explanation. Of an issue that the daemon does not have
    in hand, of which runs are recorded, they are told by its last run: standing is ``handed_off``
    where it was handed off after that, else None. One of ``running``, ``waiting`` and ``held`` is
    its entry in the state, if it has one, and ``watch`` is about its pull request, if that is
    watched. ``runs`` are the last ones, newest first, with what they have left; ``workspace`` is
    the directory that is there. ``description`` is cut where it is long; of an issue that is not in
    hand, it is what the agent of its last run got.
    """

    issue_id: str | None
    issue_identifier: str
    title: str | None
    state: str | None
    standing: str | None
    detail: str
    since: Time | None
    running: RunningView | None
    waiting: WaitingView | None
    held: HeldView | None
    last_failure: FailureView | None
    runs: tuple[RunView, ...]
    workspace: WorkspaceView | None = None
    description: str | None = None
    watch: WatchView | None = None
