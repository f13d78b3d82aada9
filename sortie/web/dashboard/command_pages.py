"""The buttons: each leads to a page that asks, and from there is a POST without content.

It is answered with a redirect, so that a page which is loaded again repeats nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sortie.web.controls import Controls
from sortie.web.dashboard.commands import COMMANDS, ISSUE_COMMANDS, Command
from sortie.web.dashboard.formats import issue_path
from sortie.web.dashboard.page_writer import PageWriter, Words
from sortie.web.sign_in import is_signed_in

_SIGN_IN = "Whoever wants to do this has to sign in: 'sortie open' prints a link for that."


def command_routes(write: PageWriter, controls: Controls) -> list[Route]:
    """Return the routes of all commands."""

    def route(path: str, command: Command) -> Route:
        return Route(path, _endpoint(write, controls, command), methods=["GET", "POST"])

    return [
        *(route(f"/{name}", command) for name, command in COMMANDS.items()),
        *(
            route(f"/issues/{{identifier}}/{name}", command)
            for name, command in ISSUE_COMMANDS.items()
        ),
    ]


def _endpoint(
    write: PageWriter, controls: Controls, command: Command
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        issue = identifier(request) if "identifier" in request.path_params else ""
        is_from_board = request.query_params.get("from") == "board"
        back = issue_path(issue) if issue and not is_from_board else "/"
        if request.method != "POST":
            return _question(write, request, command, (issue, back))
        answer = await command.perform(controls, issue)
        if answer.status in (200, 202):
            return RedirectResponse(f"{back}?done={command.name}", status_code=303)
        heading = f"{command.label}: not possible"
        words = Words(heading=heading, text=answer.message, back=back)
        return write.message(request, words, answer.status)

    return endpoint


def _question(
    write: PageWriter, request: Request, command: Command, place: tuple[str, str]
) -> Response:
    issue, back = place
    heading = f"{command.label} {issue}".strip()
    if not is_signed_in(request):
        return write.message(request, Words(heading=heading, text=_SIGN_IN, back=back))
    path = f"{issue_path(issue)}/{command.name}" if issue else f"/{command.name}"
    words = Words(
        heading=f"{heading}?",
        text=command.question,
        back=back,
        command=f"{path}?from=board" if back == "/" else path,
        label=command.label,
    )
    return write.message(request, words)


def identifier(request: Request) -> str:
    """Return the issue that a path names; what the middleware left encoded is decoded here."""
    return unquote(request.path_params["identifier"])
