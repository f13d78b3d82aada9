"""The page of one issue: how it stands and why, its runs, and what the agent writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sortie.model import StoreError
from sortie.web.controls import Controls, ExplanationView, GateView
from sortie.web.dashboard.activity import PastRun, past_run
from sortie.web.dashboard.pieces import Part, Piece, PieceList
from sortie.web.dashboard.sources import DashboardSources, SaidLine
from sortie.web.issue import IssueView
from sortie.web.past_issue import left_in_git
from sortie.web.records import HistoryQuery
from sortie.web.state import WorkspaceView

RUNS = 20

_WORKED = frozenset({"starting", "running", "stopping", "handing_off", "cleaning"})


@dataclass(frozen=True, slots=True)
class IssueRun:
    """A run of the issue; ``chosen`` is the one whose transcript is shown."""

    run: PastRun
    chosen: bool


@dataclass(frozen=True, slots=True)
class AboutIssue:
    """What the tracker tells of the issue."""

    labels: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class PastIssue:
    """How an issue stands that is not in hand, by its last run."""

    standing: str | None
    detail: str
    state: str | None


@dataclass(frozen=True, slots=True)
class LastRun:
    """What there is to look at: the workspace, and what the last run that is over has left."""

    workspace: WorkspaceView | None
    git: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class IssueControls:
    """Which commands make sense."""

    name: str
    standing: str | None


@dataclass(frozen=True, slots=True)
class TranscriptHead:
    """What stands above the lines; ``run`` is None where there are none."""

    words: str
    run: str | None


@dataclass(frozen=True, slots=True)
class IssuePage:
    """An issue's page; ``known`` tells whether anything is known of it."""

    name: str
    title: str
    url: str | None
    known: bool
    run: str | None
    parts: tuple[Part, ...]


async def issue_page(
    sources: DashboardSources, controls: Controls, name: str, run: str | None
) -> IssuePage:
    """Put together what is known of an issue; ``run`` is the one whose transcript is wanted."""
    told = await controls.explain(name)
    view = told if isinstance(told, ExplanationView) else None
    identifier = name if view is None else view.issue_identifier
    asked = HistoryQuery(issue=identifier, limit=RUNS, before=None)
    found: IssueView | str = ""
    try:
        recorded = await controls.records.history(asked)
        if recorded:
            found = await controls.records.issue(identifier)
        trouble = "it has not run yet"
    except StoreError as exc:
        recorded, trouble = (), str(exc)
    rows = tuple(map(past_run, recorded))
    past = None if view is not None or isinstance(found, str) else found
    chosen = _chosen(rows, run)
    said: Sequence[SaidLine] | str = "" if chosen is None else await sources.said(chosen)
    head = said if isinstance(said, str) else f"run {chosen}, its last {len(said)} lines"
    lines = () if isinstance(said, str) else tuple(said)
    told_of = chosen if lines else None
    runs = tuple(
        Piece(f"run:{r.run_id}", "issue_run", IssueRun(r, r.run_id == chosen)) for r in rows
    )
    return IssuePage(
        name=identifier,
        title=(past.title or "" if past else "") if view is None else view.title,
        url=None if view is None else view.issue_url,
        known=view is not None or bool(rows),
        run=chosen,
        parts=(
            _explanation(told, past),
            Piece("left", "last_run", _left(view, found)),
            Piece(
                "controls",
                "issue_controls",
                IssueControls(identifier, None if view is None else view.standing),
            ),
            Piece(
                "about",
                "about",
                AboutIssue() if view is None else AboutIssue(view.labels, view.description),
            ),
            Piece("gates", "gates", _closed_gates(view)),
            PieceList("runs-rows", runs or (Piece("no-runs", "nothing", trouble),)),
            Piece("transcript-head", "transcript_head", TranscriptHead(head or trouble, told_of)),
            PieceList(
                "transcript-lines",
                tuple(Piece(f"line:{chosen}:{line.number}", "said", line) for line in lines),
            ),
        ),
    )


def _closed_gates(view: ExplanationView | None) -> tuple[GateView, ...]:
    """Return all gates where one keeps the issue from a run that it does not have yet."""
    if view is None or view.standing in _WORKED or all(g.reason is None for g in view.gates):
        return ()
    return view.gates


def _explanation(told: ExplanationView | str, past: IssueView | None) -> Piece:
    if isinstance(told, ExplanationView):
        return Piece("explanation", "explanation", told)
    if past is None:
        return Piece("explanation", "unknown", told)
    return Piece("explanation", "past_issue", PastIssue(past.standing, past.detail, past.state))


def _left(view: ExplanationView | None, found: IssueView | str) -> LastRun:
    if isinstance(found, str):
        return LastRun(None if view is None else view.workspace)
    over = next((run for run in found.runs if run.finished_at is not None), None)
    if over is None:
        return LastRun(found.workspace)
    return LastRun(found.workspace, left_in_git(over), over.answer)


def _chosen(rows: Sequence[PastRun], run: str | None) -> str | None:
    ids = [row.run_id for row in rows]
    if run in ids:
        return run
    return ids[0] if ids else None
