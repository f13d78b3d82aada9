"""The application of a daemon that stands by: it has the leader of the workflow answer.

Rule 1: what concerns this process is answered here: probes, metrics, sign-in, drain and the files
of pages. No token, cookie or code of a person leaves it.
Rule 2: the access rules are those of this process. The leader answers as to somebody that it has
let in itself.
Rule 3: live events are made of what the leader is asked every ``LOOK`` seconds while clients
follow them.
"""

from __future__ import annotations

import html
import json
import secrets as random
from collections.abc import Sequence, Set
from typing import Protocol

import trio
from msgspec import Struct
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sortie.store.relay import RelayedAnswer, RelayedRequest, Unanswered
from sortie.telemetry import Publish
from sortie.web.access import Access, Caller
from sortie.web.app import answer_of_error, answer_of_refusal
from sortie.web.base_path import base_of, rebased
from sortie.web.broadcaster import Broadcaster, Message, Pace
from sortie.web.dashboard.painter import static_files
from sortie.web.dashboard.routes import static_routes
from sortie.web.drain import DrainSource
from sortie.web.drain_operations import drain_operations
from sortie.web.event_stream import EventStream, LiveEvents, StreamRoom
from sortie.web.health import Health
from sortie.web.leases import forget_passing_time
from sortie.web.middleware import CALLER, AccessMiddleware
from sortie.web.relayed_requests import LEADERS_BASE
from sortie.web.responses import error_response, page_response
from sortie.web.sign_in import is_signed_in, sign_in_operation, sign_in_pages
from sortie.web.view_operations import MetricsPage, StandingWords, probe_operations

LOOK = 2.0
"""Seconds between two looks at the leader's state, for live events."""

_CALLERS = {False: Caller.ANYBODY, True: Caller.SESSION}


class LeaderSource(Protocol):
    """What this process knows of a workflow that another daemon leads, and its leader."""

    async def ask(self, request: RelayedRequest) -> RelayedAnswer:
        """Have the leader answer; its ``workflow`` and ``id`` are filled in. Raises Unanswered."""
        ...

    def health(self) -> Health:
        """Return how this process is."""
        ...

    def secrets(self) -> Set[str]:
        """Return the secrets that this process knows."""
        ...


class ServedStandby(Struct, frozen=True, kw_only=True):
    """What an application of a standby serves."""

    leader: LeaderSource
    metrics: MetricsPage
    drains: DrainSource
    room: StreamRoom


class RelayedFeed:
    """A feed of a document of the leader: each change is an event with all of it.

    ``path`` is where it is, and ``moving`` the field that holds the time of the look.
    """

    def __init__(
        self,
        leader: LeaderSource,
        event: str,
        path: str,
        moving: str,
        caller: Caller = Caller.ANYBODY,
    ) -> None:
        self._leader = leader
        self._event = event
        self._request = relayed(path, caller)
        self._moving = moving
        self._seen: bytes | None = None
        self._content: object = None
        self._is_new = False

    async def look(self, base: str = "") -> bool:
        """Ask the leader; return whether there is something new."""
        try:
            answer = await self._leader.ask(self._request)
        except Unanswered:
            return False
        if answer.status != 200:
            return False
        body = answer.body
        if self._event == "page":
            body = rebased(body, answer.headers.get(LEADERS_BASE, ""), base)
        content = json.loads(body)
        content.pop(self._moving, None)
        forget_passing_time(content)
        if content == self._content:
            return False
        self._seen, self._content, self._is_new = body, content, True
        return True

    def changes(self) -> Sequence[Message]:
        """See Feed."""
        is_new, self._is_new = self._is_new, False
        return self.whole() if is_new else ()

    def whole(self) -> Sequence[Message]:
        """See Feed."""
        return () if self._seen is None else (Message(event=self._event, data=self._seen),)


class _Followed:
    """A feed that clients follow."""

    def __init__(self, feed: RelayedFeed, epoch: str) -> None:
        self.feed = feed
        self.broadcaster = Broadcaster(feed, epoch, Pace(shortest=0.1))


class StandbyServer:
    """Answers for a workflow that another daemon leads, below the path ``base``."""

    def __init__(
        self, served: ServedStandby, access: Access, publish: Publish, base: str = ""
    ) -> None:
        self._leader = served.leader
        self._base = base
        self.publish = publish
        epoch = random.token_hex(4)
        state = RelayedFeed(served.leader, "state", "/api/v1/state", "generated_at")
        self._events = _Followed(state, f"{epoch}s")
        self._pages = {
            operator: _Followed(
                RelayedFeed(served.leader, "page", "/?as=pieces", "now", caller),
                f"{epoch}{caller.value[0]}",
            )
            for operator, caller in _CALLERS.items()
        }
        self._live = LiveEvents(
            events=self._events.broadcaster,
            room=served.room,
            pages=tuple(page.broadcaster for page in self._pages.values()),
        )
        self.app = self._application(served, access, publish)

    async def follow(self) -> None:
        """Send what changes to all followers, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._live.run, self.publish)
            for followed in (self._events, *self._pages.values()):
                nursery.start_soon(self._poll, followed)

    async def _poll(self, followed: _Followed) -> None:
        while True:
            if followed.broadcaster.listeners and await followed.feed.look(self._base):
                followed.broadcaster.notify()
            await trio.sleep(LOOK)

    def _application(self, served: ServedStandby, access: Access, publish: Publish) -> ASGIApp:
        local = [
            *probe_operations(served.leader.health, served.metrics, StandingWords()),
            *drain_operations(served.drains),
            *sign_in_operation(access.sessions),
        ]
        _, icon = static_routes()
        app = Starlette(
            routes=[
                *(operation.route() for operation in local),
                *sign_in_pages(access.sessions),
                Route("/api/v1/events", self._state_events, methods=["GET"]),
                Route("/live", self._page_events, methods=["GET"]),
                Route("/static/{name}", self._static, methods=["GET"]),
                icon,
                Route("/{path:path}", self._relay, methods=["GET", "POST"]),
            ],
            exception_handlers={HTTPException: answer_of_refusal, Exception: answer_of_error},
        )
        app.router.redirect_slashes = False
        return AccessMiddleware(app, access, served.leader.secrets, publish)

    async def _state_events(self, request: Request) -> Response:
        return await self._stream(self._events, request)

    async def _page_events(self, request: Request) -> Response:
        return await self._stream(self._pages[is_signed_in(request)], request)

    async def _stream(self, followed: _Followed, request: Request) -> Response:
        if not followed.broadcaster.listeners:
            await followed.feed.look(self._base)
        return EventStream(followed.broadcaster, self._live.room, request)

    async def _static(self, request: Request) -> Response:
        """Answer with a file of a page, which may be one of the leader's version."""
        static, _ = static_routes()
        if request.path_params["name"] in static_files():
            return await static.endpoint(request)  # type: ignore[no-any-return]
        return await self._relay(request)

    async def _relay(self, request: Request) -> Response:
        scope = request.scope
        raw = scope.get("raw_path") or scope["path"].encode()
        query = scope.get("query_string", b"")
        target = raw.decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")
        method = "POST" if request.method == "POST" else "GET"
        accept = request.headers.get("accept", "")
        asked = replace(
            relayed(target, scope[CALLER], method, accept),
            sent=b"" if request.method == "GET" else await request.body(),
            sent_type=request.headers.get("content-type", ""),
        )
        try:
            answer = await self._leader.ask(asked)
        except Unanswered as exc:
            return _unanswered(request, exc)
        return _response(answer, base_of(request), is_page=not _is_api(request))


def relayed(target: str, caller: Caller, method: str = "GET", accept: str = "") -> RelayedRequest:
    """Return a request for the leader of a workflow that is named later."""
    return RelayedRequest(
        id="", workflow="", method=method, target=target, caller=caller.value, accept=accept
    )


def _is_api(request: Request) -> bool:
    return bool(request.scope["path"].startswith("/api/"))


def _response(answer: RelayedAnswer, base: str, *, is_page: bool) -> Response:
    headers = dict(answer.headers)
    former = headers.pop(LEADERS_BASE, "")
    body, kind = answer.body, headers.get("content-type", "")
    if is_page and kind.startswith(("text/html", "application/json")):
        body = rebased(body, former, base)
    where = headers.get("location", "")
    if where.startswith(f"{former}/"):
        headers["location"] = base + where.removeprefix(former)
    return Response(body, answer.status, headers)


def _unanswered(request: Request, exc: Unanswered) -> Response:
    again = {"retry-after": str(exc.retry_after)}
    accept = request.headers.get("accept", "")
    if request.method != "POST" and "text/html" in accept and not _is_api(request):
        head = f'<meta http-equiv="refresh" content="{exc.retry_after}">\n'
        return page_response(503, f"{html.escape(str(exc))}.", head=head, headers=again)
    return error_response(503, str(exc), again)
