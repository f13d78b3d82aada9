"""The dashboard of a daemon: its pages, and the streams that keep the overview up to date.

Every reader of the API may see the pages; buttons are for those who may give commands, so there are
two streams, each of which costs something only while a browser follows it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sortie.web.answers import NotAnAnswer, answer_in_form
from sortie.web.base_path import base_of
from sortie.web.broadcaster import Broadcaster
from sortie.web.dashboard.board import WAITING, board, status_word
from sortie.web.dashboard.formats import issue_path, quoted
from sortie.web.dashboard.issue_page import issue_page
from sortie.web.dashboard.list_pages import list_routes
from sortie.web.dashboard.painter import STATIC, Painter, static_files
from sortie.web.dashboard.pieces import PageFeed, Part, orders_of, painted, pieces_of
from sortie.web.event_stream import EventStream, StreamRoom
from sortie.web.operations import JSON, Handler, identifier_in
from sortie.web.sign_in import is_signed_in
from sortie.web.source import CommandAnswer, DaemonSource

_SIGN_IN_FIRST = "You have to sign in for this: 'sortie open' prints a link for that."


class DashboardCommand(Struct, frozen=True):
    """A command, what is asked before and said after it, and how it is given; ``perform`` takes
    the issue, or "" where the command is for the whole daemon."""

    name: str
    label: str
    question: str
    done: str
    perform: Callable[[DaemonSource, str], Awaitable[CommandAnswer]]


WHOLE_DAEMON = (
    DashboardCommand(
        "pause",
        "Pause",
        "Start no run any more, retries included? Runs under way go on.",
        "Dispatch is paused.",
        lambda daemon, _: daemon.pause(),
    ),
    DashboardCommand(
        "resume",
        "Resume",
        "Start runs again?",
        "Runs are started again.",
        lambda daemon, _: daemon.resume(),
    ),
    DashboardCommand(
        "refresh",
        "Poll now",
        "Have the tracker polled now?",
        "The tracker is being polled.",
        lambda daemon, _: daemon.refresh(),
    ),
)
ONE_ISSUE = (
    DashboardCommand(
        "stop",
        "Stop",
        "End the run or wait of this issue and hold it?",
        "The issue is being stopped, and held.",
        lambda daemon, issue: daemon.stop(issue),
    ),
    DashboardCommand(
        "retry",
        "Retry",
        "Make this issue due now, with attempt 0?",
        "The issue is due now.",
        lambda daemon, issue: daemon.retry(issue),
    ),
)
DONE = {command.name: command.done for command in (*WHOLE_DAEMON, *ONE_ISSUE)} | {
    "answer": "The question is answered, and the issue goes on."
}
"""What is said of a command that was obeyed, by its name."""


def command_routes(painter: Painter, daemon: DaemonSource) -> list[Route]:
    """Return the routes of all commands."""
    paths = {f"/{command.name}": command for command in WHOLE_DAEMON}
    paths |= {f"/issues/{{identifier}}/{command.name}": command for command in ONE_ISSUE}
    answers = Route("/issues/{identifier}/answer", _answer(painter, daemon), methods=["POST"])
    return [
        answers,
        *(
            Route(path, _endpoint(painter, daemon, command), methods=["GET", "POST"])
            for path, command in paths.items()
        ),
    ]


def _answer(painter: Painter, daemon: DaemonSource) -> Handler:
    async def endpoint(request: Request) -> Response:
        issue = identifier_in(request)
        back = issue_path(issue)
        try:
            answer = await daemon.answer(issue, await answer_in_form(request))
        except NotAnAnswer as exc:
            answer = CommandAnswer(status=409, message=str(exc))
        if answer.status == 200:
            return RedirectResponse(f"{base_of(request)}{back}?done=answer", status_code=303)
        values = {"heading": "Answer: not possible", "text": answer.message, "back": back}
        return painter.message(request, values, answer.status)

    return endpoint


def _endpoint(painter: Painter, daemon: DaemonSource, command: DashboardCommand) -> Handler:
    async def endpoint(request: Request) -> Response:
        issue = identifier_in(request) if "identifier" in request.path_params else ""
        is_from_board = request.query_params.get("from") == "board"
        back = issue_path(issue) if issue and not is_from_board else "/"
        heading = f"{command.label} {issue}".strip()
        if request.method == "POST":
            answer = await command.perform(daemon, issue)
            if answer.status in (200, 202):
                where = f"{base_of(request)}{back}?done={command.name}"
                return RedirectResponse(where, status_code=303)
            values = {"heading": f"{command.label}: not possible", "text": answer.message}
            return painter.message(request, values | {"back": back}, answer.status)
        if not is_signed_in(request):
            values = {"heading": heading, "text": _SIGN_IN_FIRST, "back": back}
            return painter.message(request, values)
        path = f"{issue_path(issue)}/{command.name}" if issue else f"/{command.name}"
        values = {
            "heading": f"{heading}?",
            "text": command.question,
            "back": back,
            "command": f"{path}?from=board" if back == "/" else path,
            "label": command.label,
        }
        return painter.message(request, values)

    return endpoint


_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"


class Dashboard:
    """The pages of a daemon, below the path ``base`` where it shares its server."""

    def __init__(self, daemon: DaemonSource, base: str = "") -> None:
        self._daemon = daemon
        self.painter = self._painter = Painter(daemon.secrets, base)
        self._feeds = {
            operator: PageFeed(
                look=self._look, paint=self._painter.paint, clock=time.time, operator=operator
            )
            for operator in (False, True)
        }
        epoch = secrets.token_hex(4)
        self._broadcasters = {
            operator: Broadcaster(feed, f"{epoch}{'o' if operator else 'v'}")
            for operator, feed in self._feeds.items()
        }

    @property
    def broadcasters(self) -> tuple[Broadcaster, ...]:
        """What has to run for pages to be live: one for everybody, and one for operators."""
        return tuple(self._broadcasters.values())

    def routes(self, room: StreamRoom) -> list[Route]:
        """Return the routes; a browser that follows a page takes a place in ``room``."""

        async def live(request: Request) -> Response:
            return EventStream(self._broadcasters[is_signed_in(request)], room, request)

        pages = {
            "/": self._board,
            "/live": live,
            "/issues/{identifier}": self._issue,
        }
        return [
            *(Route(path, page, methods=["GET"]) for path, page in pages.items()),
            *list_routes(self._painter, self._daemon),
            *command_routes(self._painter, self._daemon),
            *static_routes(),
        ]

    def _look(self) -> tuple[Part, ...]:
        daemon = self._daemon
        return board(daemon.overview(WAITING), daemon.health(), daemon.activity())

    async def _board(self, request: Request) -> Response:
        operator = is_signed_in(request)
        last_id = self._broadcasters[operator].look_now()
        parts = self._feeds[operator].parts or ()
        if request.query_params.get("as") == "pieces":
            return self._pieces(request, parts)
        values = {
            "word": status_word(parts),
            "last_id": last_id,
            "here": "board",
            "done": DONE.get(request.query_params.get("done", ""), ""),
        }
        return self._painter.answer(request, "board.html", parts, values)

    def _pieces(self, request: Request, parts: Sequence[Part]) -> Response:
        """Answer with all pieces of a page, for one that asks again and again."""
        seen = (time.time(), is_signed_in(request))
        pieces, orders = pieces_of(parts), orders_of(parts)
        return Response(painted(self._painter.paint, pieces, orders, seen), media_type=JSON)

    async def _issue(self, request: Request) -> Response:
        run = request.query_params.get("run")
        page = await issue_page(self._daemon, identifier_in(request), run)
        if request.query_params.get("as") == "pieces":
            return self._pieces(request, page.parts)
        query = "?as=pieces"
        if run is not None and page.run is not None:
            query += f"&run={quoted(run)}"
        values = {
            "name": page.name,
            "url": page.url,
            "heading": page.title,
            "poll": f"{issue_path(page.name)}{query}",
            "done": DONE.get(request.query_params.get("done", ""), ""),
        }
        status = 200 if page.known else 404
        return self._painter.answer(request, "issue.html", page.parts, values, status)


def static_routes() -> list[Route]:
    """Return the routes of the files of pages."""
    return [
        Route("/static/{name}", _static, methods=["GET"]),
        Route("/favicon.ico", _icon, methods=["GET"]),
    ]


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
