"""The overview of several workflows: their runs, waits, holds and pull requests in one list each.

A row is the one that its workflow's own page has, with the name of the workflow in it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from sortie.web.dashboard.board import (
    first_waiting,
    held_rows,
    running_rows,
    watched_rows,
)
from sortie.web.dashboard.painter import Painter
from sortie.web.dashboard.pieces import Part, Piece, PieceList, orders_of, painted, pieces_of
from sortie.web.operations import JSON
from sortie.web.redaction import Secrets
from sortie.web.several.source import SeveralSource, SeveralStateView
from sortie.web.sign_in import is_signed_in
from sortie.web.state import StateView

ROWS = 100
"""Rows of each list that are shown."""

_NAMED = re.compile(r"@([A-Za-z0-9._-]+)/")
_FIRST_CELL = re.compile(r'<td class="issue"[^>]*>')
_LONGEST_SEARCH = 200

_STAGES = ("needs_person", "reaction", "merging", "watched", "ending")


class OverviewList(Struct, frozen=True):
    """A list of the page: its rows of one workflow, and the key by which the rows of all are
    ordered."""

    nothing: str
    rows: Callable[[StateView], Sequence[Piece]]
    order: Callable[[Any], object]


LISTS: Mapping[str, OverviewList] = {
    "held": OverviewList("nothing is held", held_rows, lambda row: -row.since.timestamp()),
    "watched": OverviewList(
        "nothing is watched",
        watched_rows,
        lambda row: (_STAGES.index(row.stage), row.since),
    ),
    "running": OverviewList("nothing runs", running_rows, lambda row: row.started_at),
    "waiting": OverviewList(
        "nothing waits", lambda state: first_waiting(state, ROWS), lambda row: row.due_at
    ),
}
"""The lists of the page, by what the counts of a state call them."""


class OverviewPainter(Painter):
    """Paints rows of workflows by their own painters; the other parts of the page itself."""

    def __init__(self, secrets: Secrets, painters: Callable[[], Mapping[str, Painter]]) -> None:
        super().__init__(secrets)
        self._painters = painters

    def _paint(self, piece: Piece, now: float, operator: bool) -> Markup:
        named = _NAMED.match(piece.id)
        painter = self._painters().get(named[1]) if named else None
        if named is None or painter is None:
            return super()._paint(piece, now, operator)
        row = painter.paint(piece, now, operator)
        tag = f'\\g<0><small class="workflow">{named[1]}</small>'
        return Markup(_FIRST_CELL.sub(tag, row, count=1))


class OverviewPage:
    """The page at the root."""

    def __init__(self, source: SeveralSource) -> None:
        self._source = source
        self._painter = OverviewPainter(
            source.secrets, lambda: {one.name: one.painter for one in source.working()}
        )

    async def show(self, request: Request) -> Response:
        """Answer with the page, or with its parts where the page itself asks again."""
        given = request.query_params
        chosen, words = given.get("workflow", ""), given.get("q", "")[:_LONGEST_SEARCH]
        await self._source.look()
        state = self._source.state()
        parts = tuple(self._parts(state, chosen, words))
        if given.get("as") == "pieces":
            seen = (time.time(), is_signed_in(request))
            pieces, orders = pieces_of(parts), orders_of(parts)
            return Response(painted(self._painter.paint, pieces, orders, seen), media_type=JSON)
        values = {
            "chosen": chosen,
            "words": words,
            "names": [one.name for one in state.workflows],
            "query": str(request.url.query),
        }
        return self._painter.answer(request, "several.html", parts, values)

    def _parts(self, state: SeveralStateView, chosen: str, words: str) -> Iterator[Part]:
        yield Piece("several-summary", "several_summary", state)
        yield PieceList(
            "workflows-rows",
            tuple(Piece(f"workflow-{one.name}", "workflow", one) for one in state.workflows),
        )
        yield Piece("daemons", "daemons", (None, state.daemons))
        states = {
            one.name: one.daemon.overview(ROWS)
            for one in self._source.working()
            if chosen in ("", one.name)
        }
        for name, listed in LISTS.items():
            rows = [
                _of_workflow(workflow, row)
                for workflow, view in states.items()
                for row in listed.rows(view)
                if _holds(row.content, words)
            ]
            rows.sort(key=lambda row, order=listed.order: order(row.content))  # type: ignore[misc]
            count = sum(getattr(view.counts, name) for view in states.values())
            shown = tuple(rows[:ROWS])
            yield Piece(f"count-{name}", "count", (len(shown), len(rows) if words else count))
            yield PieceList(
                f"{name}-rows", shown or (Piece(f"no-{name}", "nothing", listed.nothing),)
            )


def _of_workflow(name: str, row: Piece) -> Piece:
    inner = None if row.inner is None else replace(row.inner, id=f"@{name}/{row.inner.id}")
    return replace(row, id=f"@{name}/{row.id}", inner=inner)


def _holds(content: object, words: str) -> bool:
    """Tell whether a row's issue is one that is searched for, by its name or title."""
    if not words:
        return True
    texts = (getattr(content, "issue_identifier", ""), getattr(content, "title", ""))
    return any(words.casefold() in str(text).casefold() for text in texts)
