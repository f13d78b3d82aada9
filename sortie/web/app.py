"""The routes: health, metrics and state, each from a callable that the composition root gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sortie.telemetry import Publish
from sortie.telemetry.metrics import Exposition
from sortie.web.access import Access
from sortie.web.answers import error_response, json_response
from sortie.web.gate import Gate
from sortie.web.health import Health, ProbeAnswer, liveness, readiness
from sortie.web.state import StateView, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where answers come from; each returns at once, from what is known already.

    ``metrics`` takes the value of the Accept header.
    """

    state: Callable[[], StateView]
    health: Callable[[], Health]
    metrics: Callable[[str], Exposition]


def create_app(sources: Sources, access: Access, publish: Publish) -> ASGIApp:
    """Make the application: the gate before the routes."""

    async def livez(_request: Request) -> Response:
        return _probe(liveness(sources.health()))

    async def readyz(_request: Request) -> Response:
        return _probe(readiness(sources.health()))

    async def metrics(request: Request) -> Response:
        page = sources.metrics(request.headers.get("accept", ""))
        return Response(page.body, headers={"content-type": page.content_type})

    async def state(_request: Request) -> Response:
        return Response(to_json(sources.state()), media_type="application/json")

    app = Starlette(
        routes=[
            _route("/livez", livez),
            _route("/readyz", readyz),
            _route("/metrics", metrics),
            _route("/api/v1/state", state),
        ],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return Gate(app, app.routes, access, publish)


def _route(path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
    return Route(path, endpoint, methods=["GET"])


def _probe(answer: ProbeAnswer) -> Response:
    return json_response(answer.status, answer.body)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {
        404: "there is nothing at this path",
        405: f"{request.method} is not possible here; see the Allow header",
    }
    message = messages.get(error.status_code, error.detail)
    return error_response(error.status_code, message, headers=error.headers)


async def _failed(_request: Request, _error: Exception) -> Response:
    # The server logs the traceback; the client is told nothing of it.
    return error_response(500, "an internal error; the log has its details")
