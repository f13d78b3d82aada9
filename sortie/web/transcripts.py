"""The transcript of a run: a page of its lines, as JSON or as text, also while the run goes on.

Who has read a page asks for the next one with ``after``, until ``next`` is null: of a live run that
is when it is over, so that asking again and again follows it to its end.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from sortie.model import RunId
from sortie.resources import Shortage
from sortie.telemetry.transcripts import TranscriptPage, is_run_id
from sortie.telemetry.transcripts.text import as_text
from sortie.web.operations import JSON, Answer, Endpoint, Operation, Parameter
from sortie.web.responses import error_response
from sortie.web.transcript_view import TranscriptSource, TranscriptView, to_json

LINES, MOST_LINES = 1000, 10_000
"""Lines of a page where nobody says how many, and at the most."""

_DIGITS = 15


def transcript_operation(source: TranscriptSource) -> Operation:
    """Return the operation that reads a transcript."""
    return Operation(
        method="GET",
        path="/api/v1/runs/{run_id}/transcript",
        about="What a run has said and done, also while it goes on",
        endpoint=_endpoint(source),
        answers={
            200: Answer(
                about="lines in their order; as text the header Link has the next page",
                body=TranscriptView,
                as_text="text/plain; charset=utf-8",
            )
        },
        parameters=(
            Parameter(
                name="run_id",
                place="path",
                about="the run's id",
                schema={"type": "string", "minLength": 1},
                example="6f1f2b1e-6a0e-4f53-9f3e-0a7d2c9b8e11",
            ),
            Parameter(
                name="after",
                about="a line's number: go on behind it",
                schema={"type": "integer", "minimum": 0, "maximum": 10**_DIGITS - 1, "default": 0},
            ),
            Parameter(
                name="limit",
                about="how many lines at most",
                schema={"type": "integer", "minimum": 1, "maximum": MOST_LINES, "default": LINES},
            ),
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


def _endpoint(source: TranscriptSource) -> Endpoint:

    async def transcript(request: Request) -> Response:
        run_id, query = request.path_params["run_id"], request.query_params
        after, limit = _number(query.get("after", "0")), _number(query.get("limit", str(LINES)))
        if after is None:
            return error_response(400, "after must be the number of a line, or 0")
        if limit is None or not 1 <= limit <= MOST_LINES:
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
            return _text(page, _link(request.url.path, next_, limit))
        body = to_json(page, run_id, next_, live=live)
        return Response(body, media_type=JSON)

    return transcript


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
        reason = getattr(exc, "strerror", None) or str(exc)
        return error_response(503, f"the transcript cannot be read: {reason}")


def _text(page: TranscriptPage, headers: Mapping[str, str]) -> Response:
    return PlainTextResponse("".join(f"{as_text(line)}\n" for line in page.lines), headers=headers)


def _link(path: str, next_: int | None, limit: int) -> Mapping[str, str]:
    """Return what says in a header what JSON has in ``next``."""
    if next_ is None:
        return {}
    return {"link": f'<{path}?after={next_}&limit={limit}&format=text>; rel="next"'}


def _number(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS
    return int(text) if is_number else None
