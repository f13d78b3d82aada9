"""Answers the requests that other daemons have let in and put to the leader of a workflow."""

from __future__ import annotations

import traceback
from contextlib import suppress
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Message, Receive, Scope

from sortie.facts import AdapterCrashed
from sortie.store.relay import RelayedAnswer, RelayedRequest
from sortie.telemetry import Publish
from sortie.web.access import Caller
from sortie.web.base_path import BASE
from sortie.web.middleware import ADMITTED
from sortie.web.operations import JSON
from sortie.web.redaction import json_bytes
from sortie.web.responses import error_response

LARGEST_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer that another daemon may give: states, diffs and pages of transcripts fit."""

_PASSED_ON = frozenset(
    {"allow", "cache-control", "content-disposition", "content-type", "link", "location"}
    | {"retry-after"}
)


LEADERS_BASE = "sortie-base"
"""The header with the path below which the leader serves, to which addresses in pages are."""


class _TooLarge(Exception):
    """An answer has more bytes than may be."""


async def relayed_answer(
    app: ASGIApp, request: RelayedRequest, base: str, publish: Publish
) -> RelayedAnswer:
    """Return the answer of an application to a request, which was let in already; ``base`` is the
    path below which the application serves."""
    answer = _CollectedAnswer()
    try:
        await app(_scope(request, base), _body_of(request), answer.send)
    except _TooLarge:
        megabytes = LARGEST_ANSWER // 1024**2
        return await _failure(502, f"the leader's answer has more than {megabytes} MiB; ask there")
    except Exception:  # the edge: a bug is answered as on a connection of its own
        publish(AdapterCrashed(where="a relayed request", traceback=traceback.format_exc()))
        if not answer.is_complete:
            return await _failure(500, "an internal error; the log of the leader has its details")
    return answer.whole(base)


def refused(message: str) -> RelayedAnswer:
    """Return the answer to a request that is not carried out now."""
    body = json_bytes({"error": {"code": "unavailable", "message": message}})
    return RelayedAnswer(status=503, headers={"content-type": JSON, "retry-after": "2"}, body=body)


class _CollectedAnswer:
    """What an application sends."""

    def __init__(self) -> None:
        self.is_complete = False
        self._status = 500
        self._headers: dict[str, str] = {}
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in message.get("headers", ())
            }
            self._headers = {name: headers[name] for name in _PASSED_ON & headers.keys()}
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if len(self._body) > LARGEST_ANSWER:
                raise _TooLarge
            self.is_complete = not message.get("more_body", False)

    def whole(self, base: str = "") -> RelayedAnswer:
        headers = {**self._headers, LEADERS_BASE: base}
        return RelayedAnswer(status=self._status, headers=headers, body=bytes(self._body))


async def _failure(status: int, message: str) -> RelayedAnswer:
    answer = _CollectedAnswer()
    await error_response(status, message)({"type": "http"}, _receive, answer.send)
    return answer.whole()


def _scope(request: RelayedRequest, base: str) -> Scope:
    path, _, query = request.target.partition("?")
    raw = path.encode("latin-1", "replace")
    caller = Caller.ANYBODY
    with suppress(ValueError):  # a kind of a newer version may do no more than anybody
        caller = Caller(request.caller)
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote_to_bytes(raw).decode(errors="replace"),
        "raw_path": raw,
        "query_string": query.encode("latin-1", "replace"),
        "root_path": "",
        "headers": [
            (b"host", b"localhost"),
            (b"accept", request.accept.encode("latin-1")),
            (b"content-type", request.sent_type.encode("latin-1", "replace")),
        ],
        "client": None,
        "server": None,
        "state": {},
        BASE: base,
        ADMITTED: caller,
    }


def _body_of(request: RelayedRequest) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": request.sent, "more_body": False}

    return receive


async def _receive() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
