"""The application: all operations, pages and the OpenAPI document, behind the access rules."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sortie.resources import run_in_thread
from sortie.telemetry import Publish
from sortie.web.access import Access
from sortie.web.command_operations import command_operations
from sortie.web.dashboard.routes import Dashboard
from sortie.web.drain import DrainSource, NoLeases
from sortie.web.drain_operations import drain_operations
from sortie.web.event_stream import LiveEvents
from sortie.web.middleware import AccessMiddleware
from sortie.web.openapi import document
from sortie.web.operations import JSON, DescribedAnswer, Handler, Operation, identifier_in
from sortie.web.record_operations import issue_endpoint, issue_operation, record_operations
from sortie.web.redaction import json_bytes
from sortie.web.responses import error_response
from sortie.web.sign_in import sign_in_operation, sign_in_pages
from sortie.web.source import DaemonSource
from sortie.web.view_operations import MetricsPage, view_operations

_API = "/api/v1/"


class Served(Struct, frozen=True, kw_only=True):
    """What an application serves; without a ``dashboard`` it has no pages."""

    daemon: DaemonSource
    metrics: MetricsPage
    live: LiveEvents
    dashboard: Dashboard | None = None
    drains: DrainSource = NoLeases()


def create_app(served: Served, access: Access, publish: Publish) -> ASGIApp:
    """Make the application: the access rules before the routes."""
    app = Starlette(
        routes=routes_of(served, access),
        exception_handlers={HTTPException: answer_of_refusal, Exception: answer_of_error},
    )
    app.router.redirect_slashes = False
    return AccessMiddleware(app, access, served.daemon.secrets, publish)


def routes_of(served: Served, access: Access) -> list[Route]:
    """Return all routes, in the order in which they are tried."""
    pages = [] if served.dashboard is None else served.dashboard.routes(served.live.room)
    return [
        *(operation.route() for operation in operations_of(served, access)),
        *sign_in_pages(access.sessions),
        *pages,
    ]


def operations_of(served: Served, access: Access) -> list[Operation]:
    """Return all operations of the API, in the order of the OpenAPI document."""
    daemon = served.daemon
    fixed = [
        *view_operations(daemon, served.metrics, served.live),
        *command_operations(daemon),
        *drain_operations(served.drains),
        *record_operations(daemon),
        *sign_in_operation(access.sessions),
    ]
    fixed.append(openapi_operation(fixed))
    fixed.append(issue_operation(f"{_API}{{identifier}}", _short(fixed, issue_endpoint(daemon))))
    return fixed


def openapi_operation(operations: list[Operation]) -> Operation:
    """Return the operation that serves the document of all in a list, later ones included."""
    made: list[bytes] = []

    async def openapi(_request: Request) -> Response:
        if not made:
            made.append(await run_in_thread(_document, operations))
        return Response(made[0], media_type=JSON)

    return Operation(
        method="GET",
        path=f"{_API}openapi.json",
        about="This document",
        endpoint=openapi,
        answers={200: DescribedAnswer(about="an OpenAPI document", body={"type": "object"})},
    )


def _document(operations: Sequence[Operation]) -> bytes:
    return json_bytes(document(operations))


def _short(fixed: Sequence[Operation], show_issue: Handler) -> Handler:
    """Return what answers a path of one segment that no other operation has.

    Where another one has it for other methods, that wins.
    """
    methods = {
        operation.path.removeprefix(_API): operation.method
        for operation in fixed
        if operation.path.startswith(_API)
    }

    async def issue(request: Request) -> Response:
        method = methods.get(identifier_in(request))
        if method is not None:
            raise HTTPException(405, headers={"allow": method})
        return await show_issue(request)

    return issue


async def answer_of_refusal(request: Request, error: Exception) -> Response:
    """Answer a request that no route takes."""
    assert isinstance(error, HTTPException)
    messages = {
        404: "there is nothing at this path",
        405: f"{request.method} is not possible here; see the Allow header",
    }
    message = messages.get(error.status_code, error.detail)
    return error_response(error.status_code, message, headers=error.headers)


async def answer_of_error(_request: Request, _error: Exception) -> Response:
    """Answer a request that met a bug."""
    # The server logs the traceback; the client does not see it.
    return error_response(500, "an internal error; the log has its details")
