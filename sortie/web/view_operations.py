"""The operations that show the daemon as a whole: probes, metrics, state, live events."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sortie.web.event_stream import EventStream
from sortie.web.health import ProbeAnswer, liveness, readiness
from sortie.web.operations import JSON, Answer, Operation, Parameter
from sortie.web.responses import json_response
from sortie.web.sources import Sources
from sortie.web.state import StateView, to_json

_WORDS = {"type": "array", "items": {"type": "string"}}
_PROBE = {
    "type": "object",
    "required": ["status"],
    "additionalProperties": False,
    "properties": {"status": {"type": "string"}, "reasons": _WORDS, "details": _WORDS},
}

_EVENT = {
    "type": "object",
    "properties": {
        "event": {"enum": ["state", "changes"]},
        "id": {"type": "string"},
        "data": {"type": "string", "description": "JSON"},
    },
}


def view_operations(sources: Sources) -> list[Operation]:
    """Return the operations."""

    async def livez(_request: Request) -> Response:
        return _probe(liveness(sources.health()))

    async def readyz(_request: Request) -> Response:
        return _probe(readiness(sources.health()))

    async def metrics(request: Request) -> Response:
        page = sources.metrics(request.headers.get("accept", ""))
        return Response(page.body, headers={"content-type": page.content_type})

    async def state(_request: Request) -> Response:
        return Response(to_json(sources.state()), media_type=JSON)

    async def events(request: Request) -> Response:
        return EventStream(sources.live.events, sources.live.room, request)

    return [
        Operation(
            method="GET",
            path="/livez",
            about="Whether the daemon lives, or should be restarted",
            endpoint=livez,
            answers={
                200: Answer(about="it lives", body=_PROBE),
                503: Answer(about="it is stuck", body=_PROBE),
            },
        ),
        Operation(
            method="GET",
            path="/readyz",
            about="Whether the daemon does its work now",
            endpoint=readyz,
            answers={
                200: Answer(about="it does", body=_PROBE),
                503: Answer(about="it does not, for these reasons", body=_PROBE),
            },
        ),
        Operation(
            method="GET",
            path="/metrics",
            about="The metrics, in the format that Accept asks for",
            endpoint=metrics,
            answers={200: Answer(about="Prometheus text, or OpenMetrics", media_type="text/plain")},
        ),
        Operation(
            method="GET",
            path="/api/v1/state",
            about="What runs, waits and is held, and how the daemon is",
            endpoint=state,
            answers={200: Answer(about="the state", body=StateView)},
        ),
        Operation(
            method="GET",
            path="/api/v1/events",
            about="The state and what changes in it, as server-sent events",
            endpoint=events,
            answers={
                200: Answer(about="events without end", body=_EVENT, media_type="text/event-stream")
            },
            parameters=(
                Parameter(
                    name="Last-Event-ID",
                    place="header",
                    about="the id of the last event that the client has",
                    schema={"type": "string"},
                ),
                Parameter(
                    name="last_event_id",
                    about="the same, where the client cannot set the header",
                    schema={"type": "string"},
                ),
            ),
            failures={503: "as many clients follow the events as may"},
        ),
    ]


def _probe(answer: ProbeAnswer) -> Response:
    return json_response(answer.status, answer.body)
