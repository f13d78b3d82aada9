"""The routes: health, metrics, state, commands, from callables that the composition root gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sortie.model import StoreError
from sortie.telemetry import Publish
from sortie.web.access import Access
from sortie.web.controls import CommandAnswer, Controls, explanation_to_json
from sortie.web.event_stream import EventStream
from sortie.web.health import ProbeAnswer, liveness, readiness
from sortie.web.middleware import AccessMiddleware
from sortie.web.responses import error_response, json_response
from sortie.web.sign_in import sign_in_routes
from sortie.web.sources import Sources
from sortie.web.state import to_json
from sortie.web.usage_days import DAYS, MOST_DAYS, usage_day


def create_app(sources: Sources, controls: Controls, access: Access, publish: Publish) -> ASGIApp:
    """Make the application: the access rules before the routes."""
    app = Starlette(
        routes=routes_of(sources, controls, access),
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return AccessMiddleware(app, app.routes, access, publish)


def routes_of(sources: Sources, controls: Controls, access: Access) -> list[Route]:
    """Return all routes, in the order in which they are tried."""
    return [*_views(sources), *_commands(controls), *sign_in_routes(access.sessions)]


def _views(sources: Sources) -> list[Route]:
    """Return the routes that show the daemon as a whole."""

    async def livez(_request: Request) -> Response:
        return _probe(liveness(sources.health()))

    async def readyz(_request: Request) -> Response:
        return _probe(readiness(sources.health()))

    async def metrics(request: Request) -> Response:
        page = sources.metrics(request.headers.get("accept", ""))
        return Response(page.body, headers={"content-type": page.content_type})

    async def state(_request: Request) -> Response:
        return Response(to_json(sources.state()), media_type="application/json")

    async def events(request: Request) -> Response:
        return EventStream(sources.live.events, sources.live.room, request)

    return [
        _get("/livez", livez),
        _get("/readyz", readyz),
        _get("/metrics", metrics),
        _get("/api/v1/state", state),
        _get("/api/v1/events", events),
    ]


def _commands(controls: Controls) -> list[Route]:
    """Return the routes by which operators steer the daemon and ask about one issue."""

    async def explain(request: Request) -> Response:
        told = await controls.explain(_identifier(request))
        if isinstance(told, str):
            return error_response(404, told)
        return Response(explanation_to_json(told), media_type="application/json")

    async def stats(request: Request) -> Response:
        text = request.query_params.get("days", str(DAYS))
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_DAYS):
            return error_response(400, f"days must be a number from 1 to {MOST_DAYS}")
        try:
            rows = await controls.days(int(text))
        except StoreError as exc:
            return error_response(503, str(exc))
        return json_response(200, {"days": [usage_day(row) for row in rows]})

    return [
        _get("/api/v1/stats", stats),
        _post("/api/v1/refresh", lambda _: controls.refresh()),
        _post("/api/v1/pause", lambda _: controls.pause()),
        _post("/api/v1/resume", lambda _: controls.resume()),
        _post("/api/v1/issues/{identifier}/stop", lambda r: controls.stop(_identifier(r))),
        _post("/api/v1/issues/{identifier}/retry", lambda r: controls.retry(_identifier(r))),
        _get("/api/v1/issues/{identifier}/explain", explain),
    ]


def _get(path: str, endpoint: Callable[[Request], Awaitable[Response]]) -> Route:
    return Route(path, endpoint, methods=["GET"])


def _post(path: str, command: Callable[[Request], Awaitable[CommandAnswer]]) -> Route:
    async def endpoint(request: Request) -> Response:
        answer = await command(request)
        if answer.status in (200, 202):
            return json_response(answer.status, {"message": answer.message})
        return error_response(answer.status, answer.message)

    return Route(path, endpoint, methods=["POST"])


def _identifier(request: Request) -> str:
    """Return the issue that a path names; what the middleware left encoded is decoded here."""
    return unquote(request.path_params["identifier"])


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
