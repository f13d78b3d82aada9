"""What stands before the routes: refuses requests, adds headers to answers, and counts them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from urllib.parse import unquote

from starlette.datastructures import MutableHeaders
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sortie.telemetry import Publish
from sortie.telemetry.facts import HttpAnswered
from sortie.web.access import Access, Refusal, RequestHead, caller_of, refusal
from sortie.web.bodies import ambiguous_length, discard
from sortie.web.responses import error_response, page_response

_ALWAYS = {
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
"""Where the scope says who sent the request, as a ``Caller``."""

_SIGN_IN = (
    "This page needs a browser that is signed in. On the machine where Sortie runs,"
    " <code>sortie open</code> prints a link that signs one in."
)

_KEPT = re.compile(rb"%(2[fF]|25)")


class AccessMiddleware:
    """An ASGI application around another; ``routes`` give the names under which it counts."""

    def __init__(
        self, app: ASGIApp, routes: Sequence[BaseRoute], access: Access, publish: Publish
    ) -> None:
        self._app = app
        self._routes = routes
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

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers.setdefault(name, value)
                self._publish(HttpAnswered(route=label, status=message["status"]))
            await send(message)

        head = _head(scope)
        scope[CALLER] = caller_of(self._access, head)
        refused = (
            _other_version(scope)
            or ambiguous_length(scope["headers"])
            or refusal(self._access, head)
        )
        body_refused = await discard(receive)
        if (reason := refused or body_refused) is None:
            await self._app(scope, receive, send_counted)
            return
        more = dict(reason.headers)
        if reason.status == 401:
            more["www-authenticate"] = 'Bearer realm="sortie"'
        if _is_for_a_person(head):
            answer = page_response(reason.status, _told(reason), headers=more)
        else:
            answer = error_response(reason.status, reason.message, headers=more)
        await answer(scope, receive, send_counted)

    def _label(self, scope: Scope) -> str:
        for route in self._routes:
            match, _ = route.matches(scope)
            if match is not Match.NONE and isinstance(route, Route):
                return route.path
        return "other"


def _other_version(scope: Scope) -> Refusal | None:
    """Return why a request of HTTP/2 is refused, None for any other.

    No browser speaks it without TLS. And what its client does not read, the server library keeps
    in memory without a bound: a stream of events would fill it, and ten large answers at once.
    """
    if scope.get("http_version", "1.1") in ("1.0", "1.1"):
        return None
    return Refusal(status=505, message="only HTTP/1.1 is spoken here")


def _is_for_a_person(head: RequestHead) -> bool:
    """Tell whether a browser shows the answer as a page: no program asks for HTML by itself."""
    accepted = b",".join(value for name, value in head.headers if name == b"accept")
    return b"text/html" in accepted and not head.path.startswith("/api/")


def _told(reason: Refusal) -> str:
    """Say in HTML to a person why there is nothing to see."""
    return _SIGN_IN if reason.status == 401 else f"{escape(reason.message)}."


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
    return unquote(_KEPT.sub(rb"%25\1", raw).decode("latin-1"))
