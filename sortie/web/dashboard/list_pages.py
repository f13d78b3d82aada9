"""The lists that the overview shows the beginning of: whole, searched and narrowed, by the page."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sortie.config.rules import DEFAULT_RULE
from sortie.model import RunStatus, StoreError
from sortie.web.dashboard.activity import PastRun, past_run
from sortie.web.dashboard.board import run_rows
from sortie.web.dashboard.issue_lists import ISSUE_LISTS, Search, choices
from sortie.web.dashboard.painter import Painter
from sortie.web.dashboard.pieces import Piece, PieceList
from sortie.web.source import DaemonSource
from sortie.web.state import StateView

PAGE_ROWS = 100
"""Rows on a page."""

SEARCHED_RUNS = 5_000
"""Runs that are searched at most for one page of results."""

_RUNS_AT_ONCE = 500  # runs
_RUN_COLUMNS = ("ended as", "issue", "#when", "#took", "#turns", "host", "#used", "why")
_LONGEST_SEARCH = 200


def list_routes(painter: Painter, daemon: DaemonSource) -> list[Route]:
    """Return the routes of lists of issues, and of runs."""

    async def issues(request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in ISSUE_LISTS:
            values = {"heading": "Not found", "text": "There is no such list.", "back": "/"}
            return painter.message(request, values, 404)
        return _issues(painter, request, kind, daemon.whole_state())

    async def runs(request: Request) -> Response:
        issue = request.query_params.get("issue")
        before = request.query_params.get("before")
        rule = request.query_params.get("rule") or None
        search = _search(request)
        try:
            found, older = await _runs(daemon, issue, rule, before, search)
        except StoreError as exc:
            values = {"heading": "History cannot be read", "text": str(exc), "back": "/runs"}
            return painter.message(request, values, 503)
        chosen = {
            "issue": issue or "",
            "rule": rule or "",
            "q": search.text,
            "only": search.only,
        }
        page: dict[str, object] = {
            "kind": "ended",
            "here": "runs",
            "columns": _RUN_COLUMNS,
            "heading": "Runs" if issue is None else f"Runs of {issue}",
            "shown": "newest first",
            "newer": _address("/runs", chosen) if before else None,
            "newer_name": "Newest",
            "older": None if older is None else _address("/runs", chosen | {"before": older}),
            "older_name": "Older",
            "narrowed_by": "status",
            "choices": tuple((status.value, 0) for status in RunStatus),
            "counts": {},
            "address": "/runs",
            "search": search,
            "issue": issue,
            "rule": rule or "",
            "rules": _rules(daemon.whole_state(), rule),
        }
        return _page(painter, request, run_rows(found), page)

    return [
        Route("/lists/{kind}", issues, methods=["GET"]),
        Route("/runs", runs, methods=["GET"]),
    ]


def _rules(state: StateView, chosen: str | None) -> tuple[str, ...]:
    """Return the rules by which runs can be narrowed: those of the settings, the top level, and the
    chosen one, which may be gone; none where there are no rules."""
    names = [share.rule for share in state.slots.by_rule]
    every = [*names, DEFAULT_RULE] if names else []
    return tuple(every if chosen is None or chosen in every else [*every, chosen])


async def _runs(
    daemon: DaemonSource, issue: str | None, rule: str | None, before: str | None, search: Search
) -> tuple[list[PastRun], str | None]:
    """Return a page of runs, and the run after which the next page begins, None: there is none.

    Raises StoreError.
    """
    found: list[PastRun] = []
    looked = 0
    of_rule = "" if rule == DEFAULT_RULE else rule
    size = _RUNS_AT_ONCE if search.text or search.only else PAGE_ROWS + 1
    while True:
        found_rows = await daemon.history(issue=issue, limit=size, before=before, rule=of_rule)
        rows = tuple(map(past_run, found_rows))
        for row in rows:
            if search.finds(row, row.status):
                if len(found) == PAGE_ROWS:
                    return found, found[-1].run_id
                found.append(row)
        looked += len(rows)
        if len(rows) < size:
            return found, None
        before = rows[-1].run_id
        if looked >= SEARCHED_RUNS:
            return found, before


def _issues(painter: Painter, request: Request, kind: str, state: StateView) -> Response:
    shape, search, address = ISSUE_LISTS[kind], _search(request), f"/lists/{kind}"
    every = shape.rows(state)
    pieces = tuple(row for row in every if search.finds(row.content, shape.value(row.content)))
    number = _page_number(request.query_params.get("page"))
    first = (number - 1) * PAGE_ROWS
    rows = pieces[first : first + PAGE_ROWS]
    chosen = {"q": search.text, "only": search.only}
    newer = chosen | {"page": str(number - 1)} if number > 1 else None
    older = chosen | {"page": str(number + 1)} if first + PAGE_ROWS < len(pieces) else None
    shown = f"{first + 1:,} to {first + len(rows):,} of {len(pieces):,}" if rows else "none"
    values = {
        "kind": kind,
        "here": "lists",
        "columns": shape.columns,
        "heading": "Issues" if kind == "all" else kind.capitalize(),
        "shown": shown,
        "newer": newer and _address(address, newer),
        "newer_name": "Back",
        "older": older and _address(address, older),
        "older_name": "Next",
        "narrowed_by": shape.narrowed_by,
        "choices": choices(shape, every),
        "counts": {
            name: getattr(state.counts, name)
            for name in ("held", "running", "waiting", "watched", "queued", "blocked")
            if name != "watched" or state.counts.watched or kind == name
        },
        "address": address,
        "search": search,
        "issue": None,
        "rule": "",
        "rules": (),
    }
    return _page(painter, request, rows, values)


def _search(request: Request) -> Search:
    given = request.query_params
    return Search(
        text=given.get("q", "")[:_LONGEST_SEARCH], only=given.get("only", "")[:_LONGEST_SEARCH]
    )


def _address(path: str, chosen: Mapping[str, str]) -> str:
    given = {name: value for name, value in chosen.items() if value}
    return f"{path}?{urlencode(given, errors='backslashreplace')}" if given else path


def _page(
    painter: Painter, request: Request, pieces: tuple[Piece, ...], values: Mapping[str, object]
) -> Response:
    shown = pieces or (Piece("nothing", "nothing", "nothing is here"),)
    return painter.answer(request, "list.html", (PieceList("rows", shown),), values)


def _page_number(text: str | None) -> int:
    """Return the number of a page; 1 for any other text."""
    if text is None or not (text.isascii() and text.isdigit()):
        return 1
    return max(1, int(text[:6]))
