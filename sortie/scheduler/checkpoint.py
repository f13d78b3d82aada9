"""A whole picture of the scheduler's state, from which another scheduler goes on in the same way.

Rule 1: the restored scheduler makes the same decisions for the same events at the same times, in
the same order. Orders that decide, such as that of the claims, are part of the picture.
Rule 2: a picture holds all fields of the state, but what is found anew, and all attributes of its
tables. A field that is added to the state is in it too; an attribute that is added to a table has
to be named here, or the first picture raises TypeError.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from msgspec import Struct, defstruct
from msgspec.structs import asdict

from sortie.model import IssueId, KnownWorkspace, RunId, Spending
from sortie.scheduler.budgets import RunSpending
from sortie.scheduler.candidates import Candidate
from sortie.scheduler.claim_table import ClaimOrder
from sortie.scheduler.claims import Claim
from sortie.scheduler.hosts import Troubled
from sortie.scheduler.identifiers import RunIds
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.usage_limits import UsageLimit
from sortie.scheduler.watch_table import Watched
from sortie.scheduler.webhook_table import Arrival, Suspect

_Place = tuple[str, str]


class _LedgerPicture(Struct):
    issues: dict[IssueId, Spending]
    today: Spending
    _runs: dict[RunId, RunSpending]


class _LimitsPicture(Struct):
    _known: dict[str, UsageLimit]


class _HostsPicture(Struct):
    _troubled: dict[str, Troubled]


class _SpacePicture(Struct):
    _sizes: dict[str, Mapping[str, int]]


class _WebhooksPicture(Struct):
    arrivals: dict[str, Arrival]
    suspects: dict[str, Suspect]
    named: dict[str, float]
    poll_asked: float | None
    poll_woken: bool
    polled_at: float
    poll_gap: float
    put_off_until: float
    rereads: dict[IssueId, float]
    reread_at: float
    looked_at: float
    compared: bool
    counted_on: bool


class _WorkspacesPicture(Struct):
    _owners: dict[_Place, IssueId]
    _of: dict[IssueId, dict[_Place, KnownWorkspace]]
    _blank: set[_Place]
    _unsaved: dict[_Place, float]


_TABLES: Mapping[str, type[Struct]] = {
    "ledger": _LedgerPicture,
    "limits": _LimitsPicture,
    "hosts": _HostsPicture,
    "space": _SpacePicture,
    "webhooks": _WebhooksPicture,
    "workspaces": _WorkspacesPicture,
}
_BY_HAND = {"claims", "candidates", "watches"}
_FOUND_ANEW = {"in_hand", "out", "matched"}

_HINTS = get_type_hints(SchedulerState)
_PLAIN = tuple(
    field.name
    for field in fields(SchedulerState)
    if field.name not in {*_TABLES, *_BY_HAND, *_FOUND_ANEW}
)

if TYPE_CHECKING:
    PlainPicture = Struct
    TablesPicture = Struct
else:
    PlainPicture = defstruct("PlainPicture", [(name, _HINTS[name]) for name in _PLAIN])
    TablesPicture = defstruct("TablesPicture", list(_TABLES.items()))


class Checkpoint(Struct, kw_only=True):
    """The state between two events. It does not change with the scheduler that was pictured."""

    plain: PlainPicture
    tables: TablesPicture
    claims: tuple[Claim, ...]
    order: ClaimOrder
    candidates: tuple[Candidate, ...]
    watches: tuple[Watched, ...]


def checkpoint_of(state: SchedulerState) -> Checkpoint:
    """Picture a state. Which candidates are unfit is found anew, here as in the restored one."""
    state.candidates.forget_verdicts()
    return Checkpoint(
        plain=PlainPicture(**{name: _copied(getattr(state, name)) for name in _PLAIN}),
        tables=TablesPicture(
            **{name: _picture(getattr(state, name), kind) for name, kind in _TABLES.items()}
        ),
        claims=tuple(state.claims.values()),
        order=state.claims.order(),
        candidates=tuple(state.candidates.in_order()),
        watches=tuple(map(copy, state.watches.values())),
    )


def state_of(checkpoint: Checkpoint) -> SchedulerState:
    """Return a state that goes on where the pictured one was. A checkpoint does for one."""
    state = SchedulerState(**asdict(checkpoint.plain))
    for name in _TABLES:
        vars(getattr(state, name)).update(asdict(getattr(checkpoint.tables, name)))
    for candidate in checkpoint.candidates:
        state.candidates.put(candidate)
    for claim in checkpoint.claims:
        state.claims[claim.issue.id] = claim
    state.claims.put_in_order(checkpoint.order)
    for watched in checkpoint.watches:
        state.watches[watched.issue.id] = watched
    return state


_P = TypeVar("_P", bound=Struct)


def _picture(table: object, kind: type[_P]) -> _P:
    return kind(**{name: _copied(value) for name, value in vars(table).items()})


def _copied(value: Any) -> Any:
    """Copy what changes with the state; all else is frozen."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return copy(value) if isinstance(value, set | RunIds) else value
