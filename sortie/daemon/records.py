"""What is asked over HTTP of what is on record, answered from the store and the last snapshot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from sortie.daemon.views import DaemonView
from sortie.model import IssueId, RunId
from sortie.store import Store
from sortie.web.controls import ExplanationView
from sortie.web.issue import IssueView
from sortie.web.past_issue import past_detail, past_standing
from sortie.web.records import HistoryQuery, Records
from sortie.web.runs import RunView, run_view
from sortie.web.state import HeldView, RunningView, WaitingView

RUNS = 20
"""How many runs of an issue are shown with it."""

_Row = TypeVar("_Row", RunningView, WaitingView, HeldView)
_Explain = Callable[[str], Awaitable[ExplanationView | str]]


def records_of(view: DaemonView, store: Store, explain: _Explain) -> Records:
    """Return the questions that can be asked of a running daemon."""

    async def history(query: HistoryQuery) -> Sequence[RunView]:
        before = RunId(query.before) if query.before is not None else None
        rows = await store.history(issue=query.issue, limit=query.limit, before=before)
        return tuple(map(run_view, rows))

    async def run(run_id: str) -> RunView | None:
        row = await store.run(RunId(run_id))
        return None if row is None else run_view(row)

    async def issue(name: str) -> IssueView | str:
        found = await explain(name)
        identifier = name if isinstance(found, str) else found.issue_identifier
        runs = await history(HistoryQuery(issue=identifier, limit=RUNS, before=None))
        if isinstance(found, str):
            return _recorded(view, name, runs) if runs else found
        return _in_hand(view, found, runs)

    return Records(history=history, run=run, issue=issue)


def _recorded(view: DaemonView, name: str, runs: Sequence[RunView]) -> IssueView:
    last = runs[0]
    return IssueView(
        issue_id=last.issue_id,
        issue_identifier=name,
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
        workspace=view.workspace(IssueId(last.issue_id)),
    )


def _in_hand(view: DaemonView, found: ExplanationView, runs: Sequence[RunView]) -> IssueView:
    state = view.state()
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
    )


def _row(rows: Sequence[_Row], issue_id: str) -> _Row | None:
    return next((row for row in rows if row.issue_id == issue_id), None)
