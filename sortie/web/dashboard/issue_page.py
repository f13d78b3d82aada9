"""The page of one issue: how it stands and why, its runs, and what the agent writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from sortie.model import StoreError
from sortie.web.dashboard.activity import PastRun, past_run
from sortie.web.dashboard.pieces import Part, Piece, PieceList
from sortie.web.deliveries import DeliveryView
from sortie.web.issue import ExplanationView, IssueView, QuestionView, WorkspaceView
from sortie.web.runs import image_text, left_in_git
from sortie.web.source import DaemonSource
from sortie.web.transcripts import last_lines
from sortie.web.watches import GateAnswer

DIFF_LINES = 1500
"""Lines of a diff that a page shows."""

LINE_LENGTH = 500
"""Characters of each."""

_FILE = "diff --git "
_KINDS = {"+": "added", "-": "removed"}
_NO_RUN_IS_MISSED = frozenset(
    {"starting", "running", "stopping", "handing_off", "cleaning", "watched"}
)


class IssuePage(Struct, frozen=True):
    """An issue's page; ``known``: anything is known of it."""

    name: str
    title: str
    url: str | None
    known: bool
    run: str | None
    parts: tuple[Part, ...]


async def issue_page(daemon: DaemonSource, name: str, run: str | None) -> IssuePage:
    """Put together what is known of an issue; ``run`` is the one whose transcript is wanted."""
    explanation = await daemon.explain(name)
    view = explanation if isinstance(explanation, ExplanationView) else None
    identifier = name if view is None else view.issue_identifier
    found: IssueView | str = ""
    trouble = "it has not run yet"
    try:
        found = await daemon.issue(name)
    except StoreError as exc:
        trouble = str(exc)
    rows = () if isinstance(found, str) else tuple(map(past_run, found.runs))
    past = None if view is not None or isinstance(found, str) else found
    chosen = _chosen(rows, run)
    said = trouble if chosen is None else await last_lines(daemon.transcripts, chosen)
    lines = () if isinstance(said, str) else said
    head = said if isinstance(said, str) else f"run {chosen}, its last {len(said)} lines"
    runs = tuple(Piece(f"run:{r.run_id}", "issue_run", (r, r.run_id == chosen)) for r in rows)
    standing = None if view is None else view.standing
    return IssuePage(
        name=identifier,
        title=view.title if view is not None else (past.title or "" if past else ""),
        url=None if view is None else view.issue_url,
        known=view is not None or bool(rows),
        run=chosen,
        parts=(
            _explanation(explanation, past),
            Piece("question", "question", _question(identifier, view)),
            Piece("left", "last_run", _last_run(view, found)),
            Piece("controls", "issue_controls", (identifier, standing)),
            Piece("about", "about", _about(view, past)),
            Piece("watch", "watch", None if view is None else view.watch),
            Piece("delivery", "delivery", await _delivery(daemon, found)),
            Piece("gates", "gates", _closed_gates(view)),
            PieceList("runs-rows", runs or (Piece("no-runs", "nothing", trouble),)),
            Piece("transcript-head", "transcript_head", (head, chosen if lines else None)),
            PieceList(
                "transcript-lines",
                tuple(Piece(f"line:{chosen}:{line.number}", "said", line) for line in lines),
            ),
        ),
    )


class IssueTexts(Struct, frozen=True):
    """What an issue asks for; ``past``: it is as its last run got it, and not as it stands now."""

    labels: tuple[str, ...]
    description: str
    past: bool


def _question(name: str, view: ExplanationView | None) -> tuple[str, QuestionView | None]:
    return name, None if view is None else view.question


def _about(view: ExplanationView | None, past: IssueView | None) -> IssueTexts | None:
    if view is not None:
        return IssueTexts(view.labels, view.description, past=False)
    if past is None or past.description is None:
        return None
    return IssueTexts((), past.description, past=True)


class ShownDiff(Struct, frozen=True):
    """The first lines of a diff, each with its kind; ``cut``: there are more."""

    run_id: str
    lines: tuple[tuple[str, str], ...]
    cut: bool


async def _delivery(
    daemon: DaemonSource, found: IssueView | str
) -> tuple[DeliveryView | None, ShownDiff | None]:
    """Return what became of the work of the newest run that tells, and what it changes.

    A run that goes on with what an earlier one has committed has its diff from there.
    """
    runs = () if isinstance(found, str) else found.runs
    work = None
    for run in runs:
        if run.delivery is None or (work is not None and run.delivery.head != work.head):
            continue
        try:
            text = await daemon.diff(run.run_id)
        except StoreError:
            text = None
        if text is not None:
            return work or run.delivery, _shown(run.run_id, text)
        if run.delivery.files_changed:
            work = work or run.delivery
    return work, None


def _shown(run_id: str, text: str) -> ShownDiff:
    """Return the first lines below the summary, which the list of files tells already."""
    lines = text.removesuffix("\n").split("\n")
    first = next((at for at, line in enumerate(lines) if line.startswith(_FILE)), 0)
    shown = lines[first : first + DIFF_LINES]
    return ShownDiff(run_id, tuple(_with_kinds(shown)), len(lines) - first > DIFF_LINES)


def _with_kinds(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each line behind its kind; up to its first place, what a file has is no content."""
    in_content = False
    for line in lines:
        if line.startswith(_FILE):
            in_content, kind = False, "file"
        elif line.startswith("@@"):
            in_content, kind = True, "place"
        else:
            kind = _KINDS.get(line[:1], "same") if in_content else "head"
        yield kind, line[:LINE_LENGTH]


def _closed_gates(view: ExplanationView | None) -> tuple[GateAnswer, ...]:
    """Return all gates where one keeps the issue from a run that it does not have yet."""
    if (
        view is None
        or view.standing in _NO_RUN_IS_MISSED
        or all(g.reason is None for g in view.gates)
    ):
        return ()
    return view.gates


def _explanation(explanation: ExplanationView | str, past: IssueView | None) -> Piece:
    if isinstance(explanation, str) and past is not None:
        return Piece("explanation", "past_issue", past)
    kind = "unknown" if isinstance(explanation, str) else "explanation"
    return Piece("explanation", kind, explanation)


class LastRun(Struct, frozen=True, kw_only=True):
    """The workspace, what git and the agent said after the last run that ended, and the image that
    the newest run had."""

    workspace: WorkspaceView | None
    git: str | None = None
    answer: str | None = None
    image: str | None = None


def _last_run(view: ExplanationView | None, found: IssueView | str) -> LastRun:
    if isinstance(found, str):
        return LastRun(workspace=None if view is None else view.workspace)
    newest = found.runs[0] if found.runs else None
    image = None if newest is None else image_text(newest.image, newest.image_digest)
    ended = next((run for run in found.runs if run.finished_at is not None), None)
    return LastRun(
        workspace=found.workspace,
        git=None if ended is None else left_in_git(ended),
        answer=None if ended is None else ended.answer,
        image=image,
    )


def _chosen(rows: Sequence[PastRun], run: str | None) -> str | None:
    ids = [row.run_id for row in rows]
    if run in ids:
        return run
    return ids[0] if ids else None
