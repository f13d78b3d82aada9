"""The buttons: each leads to a page that asks, and from there is a POST without content.

It is answered with a redirect, so that a page which is loaded again repeats nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sortie.web.dashboard.formats import issue_path
from sortie.web.dashboard.painter import Painter
from sortie.web.operations import Handler, identifier_in
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
DONE = {command.name: command.done for command in (*WHOLE_DAEMON, *ONE_ISSUE)}
"""What is said of a command that was obeyed, by its name."""


def command_routes(painter: Painter, daemon: DaemonSource) -> list[Route]:
    """Return the routes of all commands."""
    paths = {f"/{command.name}": command for command in WHOLE_DAEMON}
    paths |= {f"/issues/{{identifier}}/{command.name}": command for command in ONE_ISSUE}
    return [
        Route(path, _endpoint(painter, daemon, command), methods=["GET", "POST"])
        for path, command in paths.items()
    ]


def _endpoint(painter: Painter, daemon: DaemonSource, command: DashboardCommand) -> Handler:
    async def endpoint(request: Request) -> Response:
        issue = identifier_in(request) if "identifier" in request.path_params else ""
        is_from_board = request.query_params.get("from") == "board"
        back = issue_path(issue) if issue and not is_from_board else "/"
        heading = f"{command.label} {issue}".strip()
        if request.method == "POST":
            answer = await command.perform(daemon, issue)
            if answer.status in (200, 202):
                return RedirectResponse(f"{back}?done={command.name}", status_code=303)
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
