"""The operations by which this process hands its workflows over to other daemons."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sortie.web.drain import DrainSource, DrainView
from sortie.web.operations import JSON, DescribedAnswer, Operation
from sortie.web.responses import error_response
from sortie.web.state import to_json


def drain_operations(source: DrainSource) -> list[Operation]:
    """Return the operations. They are those of the process that is asked, whatever it leads."""

    async def show(_request: Request) -> Response:
        return _answer(source.standing())

    async def drain(_request: Request) -> Response:
        return _answer(await source.drain(draining=True))

    async def lead_again(_request: Request) -> Response:
        return _answer(await source.drain(draining=False))

    answers = {200: DescribedAnswer(about="how the process stands", body=DrainView)}
    refused = {409: "the process has no leases: store.url is not set"}
    later = {**refused, 503: "it is not on record yet, and takes effect once it is"}
    path = "/api/v1/drain"
    return [
        Operation(
            method="GET",
            path=f"{path}/status",
            about="Whether this process is being drained, and what it leads",
            endpoint=show,
            answers=answers,
            failures=refused,
        ),
        Operation(
            method="POST",
            path=path,
            about="Hand all workflows of this process over once their runs have ended",
            endpoint=drain,
            answers=answers,
            failures=later,
        ),
        Operation(
            method="POST",
            path=f"{path}/cancel",
            about="Let this process lead workflows again",
            endpoint=lead_again,
            answers=answers,
            failures=later,
        ),
    ]


def _answer(found: DrainView | str | None) -> Response:
    if found is None:
        return error_response(
            503, "the database has not taken it yet; it takes effect once the database has"
        )
    if isinstance(found, str):
        return error_response(409, found)
    return Response(to_json(found), media_type=JSON)
