"""The operations by which operators steer the daemon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from sortie.web.answers import ANSWER_BODY, NotAnAnswer, answer_in_json
from sortie.web.operations import (
    IDENTIFIER,
    DescribedAnswer,
    Handler,
    Operation,
    Parameter,
    identifier_in,
)
from sortie.web.responses import error_response, json_response
from sortie.web.source import CommandAnswer, DaemonSource

_MESSAGE = {
    "type": "object",
    "required": ["message"],
    "additionalProperties": False,
    "properties": {"message": {"type": "string", "description": "a sentence for people"}},
}
_DONE = {200: DescribedAnswer(about="it is done, and on record", body=_MESSAGE)}
_PENDING = {503: "it is not on record yet, and takes effect once it is"}
_WHOLE_DAEMON = {409: "the daemon is stopping", **_PENDING}
_ONE_ISSUE = {404: "there is no such issue", 409: "it is not possible now", **_PENDING}


_NOTIFICATION = Parameter(
    name="id",
    place="path",
    about="the notification's number",
    schema={"type": "integer", "minimum": 1},
    example="7",
)
_NO_NUMBER = 0  # what no notification has


def _number_in(request: Request) -> int:
    """Return the number that a path names, _NO_NUMBER where it is none."""
    text = request.path_params["id"]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else _NO_NUMBER


def command_operations(daemon: DaemonSource) -> list[Operation]:
    """Return the operations."""
    return [
        Operation(
            method="POST",
            path="/api/v1/refresh",
            about="Poll the tracker now; several requests become one poll",
            endpoint=_command(lambda _: daemon.refresh()),
            answers={202: DescribedAnswer(about="the poll comes", body=_MESSAGE)},
            failures=_WHOLE_DAEMON,
        ),
        Operation(
            method="POST",
            path="/api/v1/pause",
            about="Start no run any more; runs under way go on",
            endpoint=_command(lambda _: daemon.pause()),
            answers=_DONE,
            failures=_WHOLE_DAEMON,
        ),
        Operation(
            method="POST",
            path="/api/v1/resume",
            about="End the pause",
            endpoint=_command(lambda _: daemon.resume()),
            answers=_DONE,
            failures=_WHOLE_DAEMON,
        ),
        Operation(
            method="POST",
            path="/api/v1/notifications/send-dead",
            about="Send all notifications again that were given up",
            endpoint=_command(lambda _: daemon.send_again(None)),
            answers=_DONE,
            failures={409: "there are none", **_PENDING},
        ),
        Operation(
            method="POST",
            path="/api/v1/notifications/{id}/send",
            about="Send a notification again that was given up",
            endpoint=_command(lambda request: daemon.send_again(_number_in(request))),
            answers=_DONE,
            parameters=(_NOTIFICATION,),
            failures={409: "it is not one that was given up", **_PENDING},
        ),
        _issue_command("stop", "End the issue's run or wait, and hold the issue", daemon.stop),
        _issue_command("retry", "Make a waiting or held issue due now", daemon.retry),
        Operation(
            method="POST",
            path="/api/v1/issues/{identifier}/answer",
            about="Answer the question for which an issue is held; the first answer counts",
            endpoint=_answer(daemon),
            answers=_DONE,
            parameters=(IDENTIFIER,),
            failures=_ONE_ISSUE,
            takes=ANSWER_BODY,
        ),
    ]


def _answer(daemon: DaemonSource) -> Handler:
    async def endpoint(request: Request) -> Response:
        try:
            given = await answer_in_json(request)
        except NotAnAnswer as exc:
            return error_response(400, str(exc))
        return _response(await daemon.answer(identifier_in(request), given))

    return endpoint


def _issue_command(
    name: str, about: str, command: Callable[[str], Awaitable[CommandAnswer]]
) -> Operation:
    return Operation(
        method="POST",
        path=f"/api/v1/issues/{{identifier}}/{name}",
        about=about,
        endpoint=_command(lambda request: command(identifier_in(request))),
        answers=_DONE,
        parameters=(IDENTIFIER,),
        failures=_ONE_ISSUE,
    )


def _command(command: Callable[[Request], Awaitable[CommandAnswer]]) -> Handler:
    async def endpoint(request: Request) -> Response:
        return _response(await command(request))

    return endpoint


def _response(answer: CommandAnswer) -> Response:
    if answer.status in (200, 202):
        return json_response(answer.status, {"message": answer.message})
    return error_response(answer.status, answer.message)
