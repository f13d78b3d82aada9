"""The lists that the overview shows the beginning of: whole, searched and narrowed, by the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sortie.model import RunStatus, StoreError
from sortie.web.controls import Controls
from sortie.web.dashboard.activity import PastRun, past_run
from sortie.web.dashboard.issue_lists import ISSUE_LISTS, Choice, Search, choices
from sortie.web.dashboard.page_writer import PageWriter, Words
from sortie.web.dashboard.pieces import Piece, PieceList
from sortie.web.records import HistoryQuery
from sortie.web.state import StateView

PAGE = 100
"""Rows on a page."""

LOOKED_THROUGH = 5_000
"""Runs that are looked through at most for one page of those that somebody looks for."""

_AT_ONCE = 500  # of them
_RUN_COLUMNS = ("ended as", "issue", "#when", "#took", "#turns", "host", "#used", "why")
_TEXT_LIMIT = 200


def list_routes(
    write: PageWriter, state: Callable[[], StateView], controls: Controls
) -> list[Route]:
    """Return the routes of lists of issues, and of runs."""

    async def issues(request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in ISSUE_LISTS:
            words = Words(heading="Not found", text="There is no such list.", back="/")
            return write.message(request, words, 404)
        return _issues(write, request, kind, state())

    async def runs(request: Request) -> Response:
        issue = request.query_params.get("issue")
        before = request.query_params.get("before")
        search = _search(request)
        try:
            found, older = await _runs(controls, issue, before, search)
        except StoreError as exc:
            words = Words(heading="History cannot be read", text=str(exc), back="/runs")
            return write.message(request, words, 503)
        chosen = {"issue": issue or "", "q": search.text, "only": search.only}
        values: dict[str, object] = {
            "kind": "ended",
            "here": "runs",
            "columns": _RUN_COLUMNS,
            "heading": "Runs" if issue is None else f"Runs of {issue}",
            "told": "newest first",
            "newer": _address("/runs", chosen) if before else None,
            "newer_name": "Newest",
            "older": None if older is None else _address("/runs", chosen | {"before": older}),
            "older_name": "Older",
            "narrowed_by": "status",
            "choices": tuple(Choice(status.value, 0) for status in RunStatus),
            "counts": {},
        }
        pieces = tuple(Piece(f"e:{run.run_id}", "past_run", run) for run in found)
        return _page(write, request, pieces, {**values, **_form("/runs", search, issue)})

    return [_get("/lists/{kind}", issues), _get("/runs", runs)]


async def _runs(
    controls: Controls, issue: str | None, before: str | None, search: Search
) -> tuple[list[PastRun], str | None]:
    """Return a page of runs, and behind which one the next page goes on, None: there is none.

    Raises StoreError.
    """
    found: list[PastRun] = []
    looked = 0
    size = _AT_ONCE if search.text or search.only else PAGE + 1
    while True:
        asked = HistoryQuery(issue=issue, limit=size, before=before)
        rows = tuple(map(past_run, await controls.records.history(asked)))
        for row in rows:
            if search.finds(row, row.status):
                if len(found) == PAGE:
                    return found, found[-1].run_id
                found.append(row)
        looked += len(rows)
        if len(rows) < size:
            return found, None
        before = rows[-1].run_id
        if looked >= LOOKED_THROUGH:
            return found, before


def _issues(write: PageWriter, request: Request, kind: str, state: StateView) -> Response:
    shape, search, address = ISSUE_LISTS[kind], _search(request), f"/lists/{kind}"
    every = shape.rows(state)
    pieces = tuple(row for row in every if search.finds(row.content, shape.value(row.content)))
    number = _number(request.query_params.get("page"))
    first = (number - 1) * PAGE
    rows = pieces[first : first + PAGE]
    chosen = {"q": search.text, "only": search.only}
    shown = f"{first + 1:,} to {first + len(rows):,} of {len(pieces):,}" if rows else "none"
    counts = state.counts
    values = {
        "kind": kind,
        "here": "lists",
        "columns": shape.columns,
        "heading": "Issues" if kind == "all" else kind.capitalize(),
        "told": shown,
        "newer": _address(address, chosen | {"page": str(number - 1)}) if number > 1 else None,
        "newer_name": "Back",
        "older": _address(address, chosen | {"page": str(number + 1)})
        if first + PAGE < len(pieces)
        else None,
        "older_name": "Next",
        "narrowed_by": shape.narrowed_by,
        "choices": choices(shape, every),
        "counts": {
            name: getattr(counts, name)
            for name in ("held", "running", "waiting", "queued", "blocked")
        },
    }
    return _page(write, request, rows, {**values, **_form(address, search, None)})


def _form(address: str, search: Search, issue: str | None) -> Mapping[str, object]:
    return {"address": address, "search": search, "issue": issue}


def _search(request: Request) -> Search:
    given = request.query_params
    return Search(text=given.get("q", "")[:_TEXT_LIMIT], only=given.get("only", "")[:_TEXT_LIMIT])


def _address(path: str, chosen: Mapping[str, str]) -> str:
    given = {name: value for name, value in chosen.items() if value}
    return f"{path}?{urlencode(given, errors='backslashreplace')}" if given else path


def _page(
    write: PageWriter, request: Request, pieces: tuple[Piece, ...], values: Mapping[str, object]
) -> Response:
    shown = pieces or (Piece("nothing", "nothing", "nothing is here"),)
    return write.page(request, "list.html", (PieceList("rows", shown),), values)


def _get(path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
    return Route(path, endpoint, methods=["GET"])


def _number(text: str | None) -> int:
    """Return the number of a page; the first one for whatever is none."""
    if text is None or not (text.isascii() and text.isdigit()):
        return 1
    return max(1, int(text[:6]))
