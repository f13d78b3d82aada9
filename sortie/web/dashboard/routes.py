"""The dashboard of a daemon: its pages, and the streams that keep the overview up to date.

Whoever may read the API may see the pages; buttons are for those who may give commands, so there
are two streams, each of which costs something only while somebody follows it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sortie.web.broadcaster import Broadcaster
from sortie.web.controls import Controls
from sortie.web.dashboard.board import board, status_word
from sortie.web.dashboard.board_feed import BoardFeed, orders_of, painted
from sortie.web.dashboard.command_pages import command_routes, identifier
from sortie.web.dashboard.formats import issue_path, quoted
from sortie.web.dashboard.issue_page import issue_page
from sortie.web.dashboard.list_pages import list_routes
from sortie.web.dashboard.page_writer import PageWriter
from sortie.web.dashboard.painter import STATIC, Painter, static_files
from sortie.web.dashboard.pieces import Part, pieces_of
from sortie.web.dashboard.sources import DashboardSources
from sortie.web.event_stream import EventStream, StreamRoom
from sortie.web.json_bytes import json_bytes
from sortie.web.sign_in import is_signed_in

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"


class Dashboard:
    """The pages of a daemon; ``epoch`` is a word that no other daemon's life has."""

    def __init__(self, sources: DashboardSources, controls: Controls, epoch: str) -> None:
        self._sources = sources
        self._controls = controls
        self._painter = Painter(sources.redaction)
        self._write = PageWriter(self._painter)
        self._feeds = {operator: self._feed(operator) for operator in (False, True)}
        self._broadcasters = {
            operator: Broadcaster(feed, f"{epoch}{'o' if operator else 'v'}")
            for operator, feed in self._feeds.items()
        }

    @property
    def broadcasters(self) -> tuple[Broadcaster, ...]:
        """What has to run for pages to be live: one for everybody, and one for operators."""
        return tuple(self._broadcasters.values())

    def routes(self, room: StreamRoom) -> list[Route]:
        """Return the routes; who follows a page takes a place in ``room``."""

        async def live(request: Request) -> Response:
            return EventStream(self._broadcasters[is_signed_in(request)], room, request)

        return [
            _get("/", self._board),
            _get("/live", live),
            _get("/static/{name}", _static),
            _get("/favicon.ico", _icon),
            *list_routes(self._write, self._sources.state, self._controls),
            _get("/issues/{identifier}", self._issue),
            *command_routes(self._write, self._controls),
        ]

    def _feed(self, operator: bool) -> BoardFeed:
        return BoardFeed(look=self._look, painter=self._painter, clock=time.time, operator=operator)

    def _look(self) -> tuple[Part, ...]:
        sources = self._sources
        return board(sources.overview(), sources.health(), sources.activity())

    async def _board(self, request: Request) -> Response:
        operator = is_signed_in(request)
        last_id = self._broadcasters[operator].look_now()
        parts = self._feeds[operator].parts or ()
        values = {"word": status_word(parts), "last_id": last_id, "here": "board"}
        return self._write.page(request, "board.html", parts, values)

    async def _issue(self, request: Request) -> Response:
        run = request.query_params.get("run")
        page = await issue_page(self._sources, self._controls, identifier(request), run)
        if request.query_params.get("as") == "pieces":
            seen = (time.time(), is_signed_in(request))
            told = painted(self._painter, pieces_of(page.parts), orders_of(page.parts), seen)
            return Response(json_bytes(told), media_type="application/json")
        query = "?as=pieces" if run is None or page.run is None else f"?as=pieces&run={quoted(run)}"
        values = {
            "name": page.name,
            "url": page.url,
            "heading": page.title,
            "poll": f"{issue_path(page.name)}{query}",
        }
        status = 200 if page.known else 404
        return self._write.page(request, "issue.html", page.parts, values, status)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    content = static_files().get(name)
    if content is None:
        return Response(b"there is no such file\n", status_code=404, media_type="text/plain")
    media_type = _TYPES[name.rpartition(".")[2]]
    return Response(content, media_type=media_type, headers={"cache-control": _FOREVER})


async def _icon(_request: Request) -> Response:
    # Asked for by browsers on pages that name no icon, such as that of an error.
    return Response(
        STATIC["icon.svg"], media_type=_TYPES["svg"], headers={"cache-control": _FOREVER}
    )


def _get(path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
    return Route(path, endpoint, methods=["GET"])
