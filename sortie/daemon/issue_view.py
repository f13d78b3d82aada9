"""The view of one issue: in hand, or of the past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from sortie.web.issue import (
    ExplanationView,
    HeldView,
    IssueView,
    RunningView,
    WaitingView,
    WorkspaceView,
)
from sortie.web.runs import RunView, past_detail, past_standing
from sortie.web.state import StateView

_Row = TypeVar("_Row", RunningView, WaitingView, HeldView)


def in_hand(found: ExplanationView, state: StateView, runs: Sequence[RunView]) -> IssueView:
    """Return the view of an issue that the daemon has in hand, with its newest runs."""
    return IssueView(
        issue_id=found.issue_id,
        issue_identifier=found.issue_identifier,
        title=found.title,
        state=found.state,
        standing=found.standing,
        detail=found.detail,
        since=found.since,
        running=_row(state.running, found.issue_id),
        waiting=_row(state.waiting, found.issue_id),
        held=_row(state.held, found.issue_id),
        last_failure=found.last_failure,
        runs=tuple(runs),
        workspace=found.workspace,
        description=found.description,
        watch=found.watch,
    )


def past(issue: str, runs: Sequence[RunView], workspace: WorkspaceView | None) -> IssueView:
    """Return the view of an issue of which nothing is known but its runs, the newest first;
    ``issue`` is its identifier."""
    last = runs[0]
    return IssueView(
        issue_id=last.issue_id,
        issue_identifier=issue,
        title=last.title,
        state=last.state,
        standing=past_standing(last),
        detail=past_detail(last),
        since=None,
        running=None,
        waiting=None,
        held=None,
        last_failure=None,
        runs=tuple(runs),
        workspace=workspace,
        description=last.description,
    )


def _row(rows: Sequence[_Row], issue_id: str) -> _Row | None:
    return next((row for row in rows if row.issue_id == issue_id), None)
