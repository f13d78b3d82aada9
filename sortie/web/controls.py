"""What operators may ask of the daemon, and the shapes of what they are told.

Rule 1: a command is answered once it is on record, so that a crash does not undo it.
Rule 2: an explanation comes from what is known already; nothing waits for the tracker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Annotated, Literal

from pydantic import PlainSerializer, TypeAdapter

from sortie.dataclass import dataclass
from sortie.store import DayRow
from sortie.web.json_bytes import json_bytes
from sortie.web.records import Records
from sortie.web.state import BudgetView, FailureView, Time, WorkspaceView
from sortie.web.transcript_view import TranscriptSource

CommandStatus = Literal[200, 202, 404, 409, 503]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAnswer:
    """What became of a command: 200 done, 202 under way, 404 no such issue, 409 not possible now,
    503 not on record yet. ``message`` is a sentence for the operator."""

    status: CommandStatus
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateView:
    """One gate between the issue and a run; ``reason`` says why it is closed, None: it is open."""

    gate: str
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnswer:
    """A gate as it is told, with a truth value besides its reason."""

    gate: str
    open: bool
    reason: str | None


def _gates(gates: tuple[GateView, ...]) -> list[GateAnswer]:
    return [GateAnswer(gate=g.gate, open=g.reason is None, reason=g.reason) for g in gates]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationView:
    """How one issue stands and why.

    ``standing`` is one word and ``detail`` the sentence that goes with it; ``since`` is when that
    began, where known. ``next_run_at`` is None where no time is known; ``next_step`` says what
    must happen before the issue runs. ``ways_out`` tell what a person can do. ``budgets`` are what
    the tracker still lets Sortie ask. ``description`` is the issue's, cut where it is long.
    """

    issue_id: str
    issue_identifier: str
    title: str
    state: str
    standing: Literal[
        "candidate", "starting", "running", "stopping", "waiting", "handing_off", "held", "cleaning"
    ]
    detail: str
    since: Time | None
    run_id: str | None
    turn: int | None
    attempt: int | None
    gates: Annotated[tuple[GateView, ...], PlainSerializer(_gates, return_type=list[GateAnswer])]
    next_run_at: Time | None
    next_step: str
    ways_out: tuple[str, ...]
    last_failure: FailureView | None = None
    budgets: tuple[BudgetView, ...] = ()
    issue_url: str | None = None
    labels: tuple[str, ...] = ()
    description: str = ""
    workspace: WorkspaceView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """The commands. Issues are named by identifier or id.

    ``explain`` gives a sentence where the issue is not known. ``days`` reads what was used on so
    many last days, and raises StoreError; ``records`` are questions about what is on record, and
    ``transcripts`` what runs have said.
    """

    refresh: Callable[[], Awaitable[CommandAnswer]]
    pause: Callable[[], Awaitable[CommandAnswer]]
    resume: Callable[[], Awaitable[CommandAnswer]]
    stop: Callable[[str], Awaitable[CommandAnswer]]
    retry: Callable[[str], Awaitable[CommandAnswer]]
    explain: Callable[[str], Awaitable[ExplanationView | str]]
    days: Callable[[int], Awaitable[Sequence[DayRow]]]
    records: Records
    transcripts: TranscriptSource


@cache
def _adapter() -> TypeAdapter[ExplanationView]:
    return TypeAdapter(ExplanationView)


def explanation_to_json(explanation: ExplanationView) -> bytes:
    """Write the view as JSON in UTF-8."""
    return json_bytes(_adapter().dump_python(explanation, mode="json"))
