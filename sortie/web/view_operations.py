"""The operations that show the daemon as a whole: probes, metrics, state, live events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from sortie.telemetry.metrics import Exposition
from sortie.web.event_stream import EventStream, LiveEvents
from sortie.web.health import Health, liveness, readiness
from sortie.web.operations import JSON, DescribedAnswer, Operation, Parameter, Schema
from sortie.web.responses import json_response
from sortie.web.source import DaemonSource
from sortie.web.state import StateView, to_json

MetricsPage = Callable[[str], Exposition]
"""Returns the metrics in the format that a value of Accept asks for."""

_TEXT_LIST = {"type": "array", "items": {"type": "string"}}
PROBE_SCHEMA: Schema = {
    "type": "object",
    "required": ["status"],
    "additionalProperties": False,
    "properties": {"status": {"type": "string"}, "reasons": _TEXT_LIST, "details": _TEXT_LIST},
}

_EVENT_SCHEMA = {
    "type": "object",
    "properties": {
        "event": {"enum": ["state", "changes"]},
        "id": {"type": "string"},
        "data": {"type": "string", "description": "JSON"},
    },
}


class StandingWords(Struct, frozen=True, kw_only=True):
    """What the descriptions of the first operations call the daemon, or the process of several."""

    lives: str = "Whether the daemon lives, or should be restarted"
    ready: str = "Whether the daemon does its work now"
    is_ready: str = "it does"
    is_not_ready: str = "it does not, for these reasons"
    metrics: str = "The metrics, in the format that Accept asks for"
    state: str = "What runs, waits and is held, and how the daemon is"
    shown: str = "the state"


def probe_operations(
    health: Callable[[], Health], metrics: MetricsPage, words: StandingWords
) -> list[Operation]:
    """Return the probes and the metrics."""

    async def livez(_request: Request) -> Response:
        return json_response(*liveness(health()))

    async def readyz(_request: Request) -> Response:
        return json_response(*readiness(health()))

    async def show_metrics(request: Request) -> Response:
        page = metrics(request.headers.get("accept", ""))
        return Response(page.body, headers={"content-type": page.content_type})

    return [
        Operation(
            method="GET",
            path="/livez",
            about=words.lives,
            endpoint=livez,
            answers={
                200: DescribedAnswer(about="it lives", body=PROBE_SCHEMA),
                503: DescribedAnswer(about="it is stuck", body=PROBE_SCHEMA),
            },
        ),
        Operation(
            method="GET",
            path="/readyz",
            about=words.ready,
            endpoint=readyz,
            answers={
                200: DescribedAnswer(about=words.is_ready, body=PROBE_SCHEMA),
                503: DescribedAnswer(about=words.is_not_ready, body=PROBE_SCHEMA),
            },
        ),
        Operation(
            method="GET",
            path="/metrics",
            about=words.metrics,
            endpoint=show_metrics,
            answers={
                200: DescribedAnswer(
                    about="Prometheus text, or OpenMetrics", media_type="text/plain"
                )
            },
        ),
    ]


def standing_operations(
    health: Callable[[], Health],
    metrics: MetricsPage,
    state: Callable[[], Any],
    view: type[Any],
    words: StandingWords,
    look: Callable[[], Awaitable[object]] | None = None,
) -> list[Operation]:
    """Return the probes, the metrics, and the state, which is a ``view``; ``look`` is awaited
    before each look at it."""

    async def show_state(_request: Request) -> Response:
        if look is not None:
            await look()
        return Response(to_json(state()), media_type=JSON)

    return [
        *probe_operations(health, metrics, words),
        Operation(
            method="GET",
            path="/api/v1/state",
            about=words.state,
            endpoint=show_state,
            answers={200: DescribedAnswer(about=words.shown, body=view)},
        ),
    ]


def view_operations(
    daemon: DaemonSource, metrics: MetricsPage, live: LiveEvents
) -> list[Operation]:
    """Return the operations."""

    async def events(request: Request) -> Response:
        return EventStream(live.events, live.room, request)

    return [
        *standing_operations(daemon.health, metrics, daemon.state, StateView, StandingWords()),
        Operation(
            method="GET",
            path="/api/v1/events",
            about="The state and what changes in it, as server-sent events",
            endpoint=events,
            answers={
                200: DescribedAnswer(
                    about="events without end", body=_EVENT_SCHEMA, media_type="text/event-stream"
                )
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
