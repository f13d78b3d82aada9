"""The application at the root of a process of several workflows."""

from __future__ import annotations

from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sortie.telemetry import Publish
from sortie.web.access import Access
from sortie.web.app import answer_of_error, answer_of_refusal, openapi_operation
from sortie.web.dashboard.routes import static_routes
from sortie.web.health import liveness, readiness
from sortie.web.middleware import AccessMiddleware
from sortie.web.operations import JSON, DescribedAnswer, Operation
from sortie.web.responses import json_response
from sortie.web.several.overview_page import OverviewPage
from sortie.web.several.source import SeveralSource, SeveralStateView
from sortie.web.sign_in import sign_in_operation, sign_in_pages
from sortie.web.state import to_json
from sortie.web.view_operations import PROBE_SCHEMA, MetricsPage


class ServedProcess(Struct, frozen=True):
    """What the root serves: the workflows, and the metrics of all."""

    source: SeveralSource
    metrics: MetricsPage


def create_root_app(served: ServedProcess, access: Access, publish: Publish) -> ASGIApp:
    """Make the application of all workflows together, behind the access rules."""
    page = OverviewPage(served.source)
    app = Starlette(
        routes=[
            *(operation.route() for operation in root_operations(served, access)),
            *sign_in_pages(access.sessions),
            Route("/", page.show, methods=["GET"]),
            *static_routes(),
        ],
        exception_handlers={HTTPException: answer_of_refusal, Exception: answer_of_error},
    )
    app.router.redirect_slashes = False
    return AccessMiddleware(app, access, served.source.secrets, publish)


def root_operations(served: ServedProcess, access: Access) -> list[Operation]:
    """Return the operations, in the order of the OpenAPI document."""
    source = served.source

    async def livez(_request: Request) -> Response:
        return json_response(*liveness(source.health()))

    async def readyz(_request: Request) -> Response:
        return json_response(*readiness(source.health()))

    async def metrics(request: Request) -> Response:
        page = served.metrics(request.headers.get("accept", ""))
        return Response(page.body, headers={"content-type": page.content_type})

    async def state(_request: Request) -> Response:
        return Response(to_json(source.state()), media_type=JSON)

    found = [
        Operation(
            method="GET",
            path="/livez",
            about="Whether the process lives, or should be restarted",
            endpoint=livez,
            answers={
                200: DescribedAnswer(about="it lives", body=PROBE_SCHEMA),
                503: DescribedAnswer(about="it is stuck", body=PROBE_SCHEMA),
            },
        ),
        Operation(
            method="GET",
            path="/readyz",
            about="Whether all workflows that are not broken do their work now",
            endpoint=readyz,
            answers={
                200: DescribedAnswer(about="they do", body=PROBE_SCHEMA),
                503: DescribedAnswer(about="they do not, for these reasons", body=PROBE_SCHEMA),
            },
        ),
        Operation(
            method="GET",
            path="/metrics",
            about="The metrics of all workflows, each with the label workflow",
            endpoint=metrics,
            answers={
                200: DescribedAnswer(
                    about="Prometheus text, or OpenMetrics", media_type="text/plain"
                )
            },
        ),
        Operation(
            method="GET",
            path="/api/v1/state",
            about="The workflows of the process, and how each stands",
            endpoint=state,
            answers={200: DescribedAnswer(about="the workflows", body=SeveralStateView)},
        ),
        *sign_in_operation(access.sessions),
    ]
    return [*found, openapi_operation(found)]
