"""A claim is the scheduler's hold on one issue.

Rule 1: an issue has at most one claim, so "running and also waiting to retry" cannot be written
down; an issue without one is unclaimed.
Rule 2: every claim ends. Starting, Running and Stopping end with WorkerExited, Rechecking with
IssuesRefreshed. HandingOff and Cleaning end with their answer, and are tried again at ``due_at``.
Waiting comes due. Held ends with a change of the issue, an operator's command, a reload, or the
answer to its question.
Rule 3: ``last_request`` is the number of the newest tracker request sent before the claim last
changed. Answers to it, or to older requests, are ignored.
"""

from __future__ import annotations

from msgspec import Struct

from sortie.model import (
    HoldReason,
    Issue,
    KeptWorkspace,
    RunId,
    StopReason,
    Streak,
    Trigger,
    WaitKind,
)


class _Base(Struct, frozen=True, kw_only=True, tag=True):
    issue: Issue
    last_request: int = 0
    missing_since: float | None = None


class _Worked(_Base, frozen=True, kw_only=True):
    """A worker has the issue. ``began_in`` is the state that the run found or set first, ``rule``
    the rule that decides for the issue."""

    run_id: RunId
    streak: Streak
    host: str
    since: float
    began_in: str
    rule: str = ""
    turns: int = 0


class Starting(_Worked, frozen=True, kw_only=True):
    """A worker has the issue, and no turn has started.

    ``bound_for`` is the state to which the worker will move the issue; it needs a slot there too.
    """

    bound_for: str | None = None


class Departure(Struct, frozen=True, kw_only=True):
    """An issue left its active states while a turn was under way.

    The agent may have moved the issue itself just before it finishes, so the turn may go on until
    ``stop_at``. ``sentence`` says where the issue went.
    """

    reason: StopReason
    sentence: str
    stop_at: float


class Running(_Worked, frozen=True, kw_only=True):
    """A worker has the issue, and a turn has started; ``departure`` is None while the issue is
    active. ``taken_over`` says from which daemon the run was taken over, and in which turn."""

    departure: Departure | None = None
    taken_over: str = ""


class Stopping(_Worked, frozen=True, kw_only=True):
    """The worker was told to stop and has not exited yet."""

    reason: StopReason


class HandingOff(_Base, frozen=True, kw_only=True):
    """The run ended well and the issue is being moved to the handoff state.

    ``token`` is the number of the request under way; None while waiting for ``due_at``.
    ``stopped``: an operator stopped the issue, so it is held if the request fails; the hold is on
    record. ``refusals`` counts the failures in a row that an outage of the tracker caused, which do
    not count as ``tries``; ``refusal`` is the last error.
    """

    streak: Streak
    tries: int
    token: int | None
    due_at: float
    stopped: bool = False
    refusals: int = 0
    refusal: str = ""


class Waiting(_Base, frozen=True, kw_only=True):
    """A run is to follow at ``due_at``.

    Once ``due`` it competes for a slot; ``reason`` says what it waits for then. ``again_at`` is
    when it may next be re-read, after a re-read that failed.
    """

    kind: WaitKind
    trigger: Trigger
    streak: Streak
    due_at: float
    due: bool = False
    again_at: float = 0.0
    reason: str = ""


class Rechecking(_Base, frozen=True, kw_only=True):
    """The issue was chosen; the tracker is being asked whether that still holds.

    It counts as if it ran on ``host`` already, by ``rule``, and as bound for another state where
    ``bound_for`` names one. ``waited`` is the wait that came due, None for a fresh candidate.
    """

    token: int
    host: str
    waited: Waiting | None
    rule: str = ""
    bound_for: str | None = None


class Cleaning(_Base, frozen=True, kw_only=True):
    """The issue is terminal and its workspaces are being removed.

    ``error`` says why the last try failed, and ``kept`` which were left because of work in them
    that is nowhere else, the first of them since ``kept_since``; the next try is at ``due_at``
    unless ``busy``.
    """

    tries: int = 0
    busy: bool = True
    due_at: float = 0.0
    error: str | None = None
    kept: tuple[KeptWorkspace, ...] = ()
    kept_since: float = 0.0


class Held(_Base, frozen=True, kw_only=True):
    """The issue is parked; ``issue`` is the baseline with which later reads are compared.

    While ``baseline_final`` is False the baseline may lack what the run itself wrote last, so the
    next read of the issue replaces it. ``handoff_state`` is the one in force where the issue is
    held because it could not be moved, None elsewhere; another one ends such a hold. ``due_at`` is
    when the default of its question counts, None where it never does by itself; ``overdue``: that
    has passed, and the next read is to show whether the ticket has an answer.
    """

    reason: HoldReason
    detail: str
    since: float
    baseline_final: bool = True
    handoff_state: str | None = None
    due_at: float | None = None
    overdue: bool = False


Worked = Starting | Running | Stopping
WORKED = (Starting, Running, Stopping)
Claim = Starting | Running | Stopping | HandingOff | Waiting | Rechecking | Cleaning | Held
