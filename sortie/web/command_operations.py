"""The operations by which operators steer the daemon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from sortie.web.controls import CommandAnswer, Controls
from sortie.web.operations import Answer, Endpoint, Operation, Parameter
from sortie.web.responses import error_response, json_response

IDENTIFIER = Parameter(
    name="identifier",
    place="path",
    about="the issue's identifier, percent-encoded, or its id",
    schema={"type": "string", "minLength": 1},
    example="DEMO-1",
)

_MESSAGE = {
    "type": "object",
    "required": ["message"],
    "additionalProperties": False,
    "properties": {"message": {"type": "string", "description": "a sentence for people"}},
}
_DONE = {200: Answer(about="it is done, and on record", body=_MESSAGE)}
_PENDING = {503: "it is not on record yet, and takes effect once it is"}
_ONE_ISSUE = {404: "there is no such issue", 409: "it is not possible now", **_PENDING}


def command_operations(controls: Controls) -> list[Operation]:
    """Return the operations."""
    return [
        Operation(
            method="POST",
            path="/api/v1/refresh",
            about="Poll the tracker now; several requests become one poll",
            endpoint=_command(lambda _: controls.refresh()),
            answers={202: Answer(about="the poll comes", body=_MESSAGE)},
            failures={409: "the daemon is stopping", **_PENDING},
        ),
        Operation(
            method="POST",
            path="/api/v1/pause",
            about="Start no run any more; runs under way go on",
            endpoint=_command(lambda _: controls.pause()),
            answers=_DONE,
            failures={409: "the daemon is stopping", **_PENDING},
        ),
        Operation(
            method="POST",
            path="/api/v1/resume",
            about="End the pause",
            endpoint=_command(lambda _: controls.resume()),
            answers=_DONE,
            failures={409: "the daemon is stopping", **_PENDING},
        ),
        Operation(
            method="POST",
            path="/api/v1/issues/{identifier}/stop",
            about="End the issue's run or wait, and hold the issue",
            endpoint=_command(lambda request: controls.stop(identifier_in(request))),
            answers=_DONE,
            parameters=(IDENTIFIER,),
            failures=_ONE_ISSUE,
        ),
        Operation(
            method="POST",
            path="/api/v1/issues/{identifier}/retry",
            about="Make a waiting or held issue due now",
            endpoint=_command(lambda request: controls.retry(identifier_in(request))),
            answers=_DONE,
            parameters=(IDENTIFIER,),
            failures=_ONE_ISSUE,
        ),
    ]


def identifier_in(request: Request) -> str:
    """Return the issue that a path names; what the middleware left encoded is decoded here."""
    return unquote(request.path_params["identifier"])


def _command(command: Callable[[Request], Awaitable[CommandAnswer]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        answer = await command(request)
        if answer.status in (200, 202):
            return json_response(answer.status, {"message": answer.message})
        return error_response(answer.status, answer.message)

    return endpoint
