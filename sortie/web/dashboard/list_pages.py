"""The lists that the overview shows the beginning of, by the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sortie.model import StoreError
from sortie.web.controls import Controls
from sortie.web.dashboard.activity import past_run
from sortie.web.dashboard.board import first_waiting, held_rows, running_rows
from sortie.web.dashboard.formats import quoted
from sortie.web.dashboard.page_writer import PageWriter, Words
from sortie.web.dashboard.pieces import Piece, PieceList
from sortie.web.records import HistoryQuery
from sortie.web.state import StateView

PAGE = 100
"""Rows on a page."""

_ROWS: Mapping[str, Callable[[StateView], tuple[Piece, ...]]] = {
    "running": running_rows,
    "waiting": lambda state: first_waiting(state, len(state.waiting)),
    "held": held_rows,
}
_COLUMNS = {
    "running": ("issue", "turn", "#elapsed", "last output", "host", "#used", ""),
    "waiting": ("issue", "for", "#due", "why", ""),
    "held": ("issue", "reason", "#for", "why", ""),
    "ended": ("ended as", "issue", "#when", "#took", "#turns", "host", "#used", "why"),
}


def list_routes(
    write: PageWriter, state: Callable[[], StateView], controls: Controls
) -> list[Route]:
    """Return the routes of lists of issues, and of runs."""

    async def issues(request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in _ROWS:
            words = Words(heading="Not found", text="There is no such list.", back="/")
            return write.message(request, words, 404)
        return _issues(write, request, kind, _ROWS[kind](state()))

    async def runs(request: Request) -> Response:
        issue, before = request.query_params.get("issue"), request.query_params.get("before")
        asked = HistoryQuery(issue=issue, limit=PAGE + 1, before=before)
        try:
            found = tuple(map(past_run, await controls.records.history(asked)))
        except StoreError as exc:
            words = Words(heading="History cannot be read", text=str(exc), back="/runs")
            return write.message(request, words, 503)
        chosen = "" if issue is None else f"&issue={quoted(issue)}"
        last = found[PAGE - 1].run_id if len(found) > PAGE else None
        values = {
            "kind": "ended",
            "here": "runs",
            "heading": "Runs" if issue is None else f"Runs of {issue}",
            "told": "newest first",
            "newer": f"/runs?{chosen[1:]}" if before else None,
            "newer_name": "Newest",
            "older": None if last is None else f"/runs?before={quoted(last)}{chosen}",
            "older_name": "Older",
        }
        pieces = tuple(Piece(f"e:{run.run_id}", "past_run", run) for run in found[:PAGE])
        return _rows(write, request, pieces, values)

    return [_get("/lists/{kind}", issues), _get("/runs", runs)]


def _issues(write: PageWriter, request: Request, kind: str, pieces: tuple[Piece, ...]) -> Response:
    number = _number(request.query_params.get("page"))
    first = (number - 1) * PAGE
    rows = pieces[first : first + PAGE]
    shown = f"{first + 1:,} to {first + len(rows):,} of {len(pieces):,}" if rows else "none"
    values = {
        "kind": kind,
        "heading": kind.capitalize(),
        "told": shown,
        "newer": f"/lists/{kind}?page={number - 1}" if number > 1 else None,
        "newer_name": "Back",
        "older": f"/lists/{kind}?page={number + 1}" if first + PAGE < len(pieces) else None,
        "older_name": "Next",
    }
    return _rows(write, request, rows, values)


def _rows(
    write: PageWriter, request: Request, pieces: tuple[Piece, ...], values: Mapping[str, object]
) -> Response:
    shown = pieces or (Piece("nothing", "nothing", "nothing is here"),)
    more = {"columns": _COLUMNS[str(values["kind"])]}
    return write.page(request, "list.html", (PieceList("rows", shown),), {**values, **more})


def _get(path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
    return Route(path, endpoint, methods=["GET"])


def _number(text: str | None) -> int:
    """Return the number of a page; the first one for whatever is none."""
    if text is None or not (text.isascii() and text.isdigit()):
        return 1
    return max(1, int(text[:6]))
