"""What stands before the routes: it refuses requests, and completes and counts answers.

Bodies of requests are read whole before a route sees them, so that none may take memory or time
without end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from urllib.parse import unquote

import trio
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope, Send

from sortie.facts import HttpAnswered
from sortie.telemetry import Publish
from sortie.web.access import Access, Caller, Refusal, RequestHead, caller_of, refusal
from sortie.web.operations import JSON
from sortie.web.redaction import Secrets, without_secrets
from sortie.web.responses import error_response, page_response

_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    # Not no-referrer: a form of our own would be sent with the Origin "null".
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

CALLER = "sortie.caller"
"""The scope's key for the sender of the request, a ``Caller``."""

ADMITTED = "sortie.admitted"
"""The scope's key for the sender, a ``Caller``, of a request that another daemon has let in."""

_HOW_TO_SIGN_IN = (
    "This page needs a browser that is signed in. On the machine where Sortie runs,"
    " <code>sortie open</code> prints a link that signs one in."
)

_KEPT_ENCODED = re.compile(rb"%(2[fF]|25)")


BODY_LIMIT = 64 * 1024
"""Bytes that a body may have."""

BODY_SECONDS = 5.0
"""How long a body may take to arrive."""

_DISCARD_LIMIT = 16 * BODY_LIMIT
"""Bytes thrown away before an oversized body is refused: a client that is still sending when the
connection is closed never reads the answer."""


class AccessMiddleware:
    """An ASGI application around another; ``routes`` give the names under which it counts."""

    def __init__(self, app: Starlette, access: Access, secrets: Secrets, publish: Publish) -> None:
        self._app = app
        self._secrets = secrets
        self._access = access
        self._publish = publish

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the connection kinds that no route serves are closed."""
        if scope["type"] == "websocket":
            self._publish(HttpAnswered(route="other", status=403))
            await send({"type": "websocket.close", "code": 1000})
            return
        if scope["type"] != "http":
            return
        scope = {**scope, "path": _path(scope)}
        label = self._label(scope)
        json_start: list[Message] = []

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                self._publish(HttpAnswered(route=label, status=message["status"]))
                if headers.get("content-type", "").startswith(JSON):
                    json_start.append(message)  # its length may change with its body
                    return
            elif json_start:
                start = json_start.pop()
                if body := message.get("body", b""):
                    message = {**message, "body": without_secrets(body, self._secrets())}
                    MutableHeaders(scope=start)["content-length"] = str(len(message["body"]))
                await send(start)
            await send(message)

        head = _head(scope)
        admitted: Caller | None = scope.get(ADMITTED)
        scope[CALLER] = admitted or caller_of(self._access, head)
        refused = (
            other_version(scope)
            or ambiguous_length(scope["headers"])
            or (None if admitted else refusal(self._access, head))
        )
        body, body_refused = await read_body(receive)
        if (reason := refused or body_refused) is None:
            taken = receive if scope["method"] == "GET" else _replayed(body, receive)
            await self._app(scope, taken, send_counted)
            return
        more = dict(reason.headers)
        if reason.status == 401:
            more["www-authenticate"] = 'Bearer realm="sortie"'
        if _wants_page(head):
            answer = page_response(reason.status, _refusal_text(reason), headers=more)
        else:
            answer = error_response(reason.status, reason.message, headers=more)
        await answer(scope, receive, send_counted)

    def _label(self, scope: Scope) -> str:
        for route in self._app.routes:
            match, _ = route.matches(scope)
            if match is not Match.NONE and isinstance(route, Route):
                return route.path
        return "other"


def ambiguous_length(headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
    """Return why a request is refused whose end is ambiguous, None for any other.

    A reader that counts bytes and one that looks for the last chunk see different ends (RFC 9112,
    6.1): the rest of the body to one of them is another request to the other.
    """
    names = {name.lower() for name, _ in headers}
    if not {b"content-length", b"transfer-encoding"} <= names:
        return None
    message = "send Content-Length or Transfer-Encoding, not both"
    return Refusal(status=400, message=message, headers={"connection": "close"})


async def read_body(receive: Receive) -> tuple[bytes, Refusal | None]:
    """Take in a body; return it, and why it is refused, None where it is not."""
    size, whole, body = 0, False, bytearray()
    with trio.move_on_after(BODY_SECONDS):
        while not whole and size <= _DISCARD_LIMIT:
            message = await receive()
            if message["type"] != "http.request":
                break  # the client is gone
            size += len(message.get("body", b""))
            if size <= BODY_LIMIT:
                body += message.get("body", b"")
            whole = not message.get("more_body", False)
    if size > BODY_LIMIT:
        too_large = f"a body may have {BODY_LIMIT // 1024} KiB at most"
        return b"", Refusal(status=413, message=too_large)
    if not whole:
        late = f"the body did not arrive within {BODY_SECONDS:g} s"
        return b"", Refusal(status=400, message=late)
    return bytes(body), None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was taken in already, and then what comes behind it.

    A route that follows events waits for the end of the connection, and needs no body.
    """
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def other_version(scope: Scope) -> Refusal | None:
    """Return why a request of HTTP/2 is refused, None for any other.

    No browser speaks it without TLS. The server library keeps in memory, without a bound, what an
    HTTP/2 client does not read: a stream of events, or ten large answers, would fill the memory.
    """
    if scope.get("http_version", "1.1") in ("1.0", "1.1"):
        return None
    return Refusal(status=505, message="only HTTP/1.1 is spoken here")


def _wants_page(head: RequestHead) -> bool:
    """Tell whether a browser shows the answer as a page: no program asks for HTML by itself."""
    accepted = b",".join(value for name, value in head.headers if name == b"accept")
    return b"text/html" in accepted and not head.path.startswith("/api/")


def _refusal_text(reason: Refusal) -> str:
    """Say in HTML why a page is refused."""
    return _HOW_TO_SIGN_IN if reason.status == 401 else f"{escape(reason.message)}."


def _head(scope: Scope) -> RequestHead:
    server = scope.get("server")
    return RequestHead(
        method=scope["method"],
        path=scope["path"],
        headers=scope["headers"],
        local_address=server[0] if server else None,
    )


def _path(scope: Scope) -> str:
    """Return the decoded path, in which a slash or percent sign inside a segment stays encoded.

    Otherwise the identifier ``a/b`` could not be told from two segments.
    """
    raw = scope.get("raw_path")
    if raw is None:
        return str(scope["path"])
    return unquote(_KEPT_ENCODED.sub(rb"%25\1", raw).decode("latin-1"))
