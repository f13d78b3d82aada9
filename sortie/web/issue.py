"""One issue: how it stands, and what is recorded of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from sortie.web.json_bytes import json_bytes
from sortie.web.runs import RunView
from sortie.web.state import (
    FailureView,
    HeldView,
    RunningView,
    Time,
    WaitingView,
    WorkspaceView,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueView:
    """An issue by its identifier or id.

    ``standing`` and ``detail`` are as in its explanation. Of an issue that the daemon does not have
    in hand, of which runs are recorded, they are told by its last run: standing is ``handed_off``
    where it was handed off after that, else None. One of ``running``, ``waiting`` and ``held`` is
    its entry in the state, if it has one. ``runs`` are the last ones, newest first, with what they
    have left; ``workspace`` is the directory that is there.
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


@cache
def _adapter() -> TypeAdapter[IssueView]:
    return TypeAdapter(IssueView)


def issue_to_json(issue: IssueView) -> bytes:
    """Write the view as JSON in UTF-8."""
    try:
        return _adapter().dump_json(issue)
    except PydanticSerializationError:  # a lone surrogate, as file names may hold
        return json_bytes(_adapter().dump_python(issue, mode="json"))
