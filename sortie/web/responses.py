"""The shapes of answers: JSON, the one shape of every error, and a page of one sentence."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import HTMLResponse, Response

from sortie.web.redaction import json_bytes

_CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    429: "too_many",
    500: "internal_error",
    502: "bad_gateway",
    503: "unavailable",
    505: "http_version_not_supported",
}

_SENTENCE_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sortie</title>
{head}<p>{text}</p>
"""


def json_response(status: int, value: object, headers: Mapping[str, str] | None = None) -> Response:
    """Make an answer of plain data."""
    return Response(
        json_bytes(value), status_code=status, headers=headers, media_type="application/json"
    )


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Make ``{"error": {"code", "message"}}`` of a status and a message."""
    error = {"code": _CODES.get(status, f"http_{status}"), "message": message}
    return json_response(status, {"error": error}, headers)


def page_response(
    status: int, text: str, *, head: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """Make a page that says one thing and needs nothing else; ``text`` and ``head`` are HTML."""
    return HTMLResponse(_SENTENCE_PAGE.format(head=head, text=text), status, headers=headers)
