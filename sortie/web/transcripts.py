"""The transcript of a run: a page of its lines, as JSON or as text, also while the run goes on.

A client asks for the next page with ``after``, until ``next`` is null. Of a live run it becomes
null when the run is over, so that asking again and again follows the run to its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from sortie.model import RunId
from sortie.resources import Shortage
from sortie.telemetry.transcripts import Kind, TranscriptLine, TranscriptPage, as_text, is_run_id
from sortie.web.operations import (
    JSON,
    RUN_ID,
    DescribedAnswer,
    Operation,
    Parameter,
    number_in,
    number_parameter,
)
from sortie.web.responses import error_response
from sortie.web.source import TranscriptSource
from sortie.web.state import to_json
from sortie.web.times import Time

DEFAULT_LINES, MOST_LINES = 1000, 10_000
"""Lines of a page: by default, and at most."""

PAGE_LINES = 200
"""Lines that an issue's page shows at most."""

_HIGHEST_NUMBER = 10**15 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LineView:
    """One line: its number, when it came, in which turn (null: outside of one), and what it is.

    ``role`` is ``reviewer`` where the line is that of a second session which judges the work.
    """

    line: int
    at: Time
    turn: int | None
    kind: Kind
    text: str
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptView:
    """Some lines of a run.

    ``next`` is what to pass as ``after`` for those that follow, null where none will. ``live``:
    the run was going on. ``ended``: the line that tells of its end is among these or was before.
    ``damage`` says why what follows cannot be read.
    """

    run_id: str
    lines: tuple[LineView, ...]
    next: int | None
    live: bool
    ended: bool
    damage: str | None


def transcript_operation(source: TranscriptSource) -> Operation:
    """Return the operation that reads a transcript."""

    async def transcript(request: Request) -> Response:
        run_id, query = request.path_params["run_id"], request.query_params
        after = number_in(request, "after", 0, _HIGHEST_NUMBER, least=0)
        limit = number_in(request, "limit", DEFAULT_LINES, MOST_LINES)
        if after is None:
            return error_response(400, "after must be the number of a line, or 0")
        if limit is None:
            return error_response(400, f"limit must be a number from 1 to {MOST_LINES}")
        form = query.get("format", "json")
        if form not in ("json", "text"):
            return error_response(400, "format must be json or text")
        live = source.is_live(RunId(run_id))  # before the page is read: it may end meanwhile
        page = await _page(source, run_id, after, limit)
        if isinstance(page, Response):
            return page
        more = page.more or live
        next_ = (page.lines[-1].number if page.lines else after) if more else None
        if form == "text":
            text = "".join(f"{as_text(line)}\n" for line in page.lines)
            return PlainTextResponse(text, headers=_link(request.url.path, next_, limit))
        view = TranscriptView(
            run_id=run_id,
            lines=tuple(map(_line_view, page.lines)),
            next=next_,
            live=live,
            ended=page.ended,
            damage=page.damage,
        )
        return Response(to_json(view), media_type=JSON)

    return Operation(
        method="GET",
        path="/api/v1/runs/{run_id}/transcript",
        about="What a run has said and done, also while it goes on",
        endpoint=transcript,
        answers={
            200: DescribedAnswer(
                about="lines in their order; as text the header Link has the next page",
                body=TranscriptView,
                as_text="text/plain; charset=utf-8",
            )
        },
        parameters=(
            RUN_ID,
            Parameter(
                name="after",
                about="a line's number: go on behind it",
                schema={"type": "integer", "minimum": 0, "maximum": _HIGHEST_NUMBER, "default": 0},
            ),
            number_parameter("limit", "how many lines at most", DEFAULT_LINES, MOST_LINES),
            Parameter(
                name="format",
                about="how it is written",
                schema={"type": "string", "enum": ["json", "text"], "default": "json"},
            ),
        ),
        failures={
            404: "there is no such transcript, or none any more",
            503: "the transcript cannot be read",
        },
    )


async def last_lines(source: TranscriptSource, run: str) -> tuple[TranscriptLine, ...] | str:
    """Return the last lines of a run, or a sentence where there are none."""
    missing = "no transcript is kept"
    if not is_run_id(run):
        return missing
    try:
        return (await source.last(RunId(run), PAGE_LINES)).lines
    except FileNotFoundError:
        return missing
    except (OSError, Shortage) as exc:
        return _unreadable(exc)


async def _page(
    source: TranscriptSource, name: str, after: int, limit: int
) -> TranscriptPage | Response:
    """Return a page, or the answer where there is none."""
    missing = f"there is no transcript of a run {name[:40]!r}"
    if not is_run_id(name):
        return error_response(404, missing)
    run_id = RunId(name)
    try:
        return await source.page(run_id, after, limit)
    except FileNotFoundError:
        return TranscriptPage() if source.is_live(run_id) else error_response(404, missing)
    except (OSError, Shortage) as exc:
        return error_response(503, _unreadable(exc))


def _unreadable(error: Exception) -> str:
    return f"the transcript cannot be read: {getattr(error, 'strerror', None) or error}"


def _line_view(line: TranscriptLine) -> LineView:
    return LineView(
        line=line.number,
        at=line.at,
        turn=line.turn,
        kind=line.kind,
        text=line.text,
        role=line.role,
    )


def _link(path: str, next_: int | None, limit: int) -> Mapping[str, str]:
    """Return what says in a header what JSON has in ``next``."""
    if next_ is None:
        return {}
    return {"link": f'<{path}?after={next_}&limit={limit}&format=text>; rel="next"'}
