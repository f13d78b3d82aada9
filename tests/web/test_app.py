"""The application: routes, errors, headers and what is counted, without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from sortie.facts import HttpAnswered
from sortie.web.access import Access
from sortie.web.app import create_app
from sortie.web.state import to_json
from tests.web.conftest import STATE, World

URL = "http://localhost:7678"


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    access = Access(host="127.0.0.1", loopback=True, token="right")
    app = create_app(world.served(), access, world.facts.append)
    # A client would see the answer to a crash, and the server log the exception.
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
        yield client


async def test_the_state_is_the_view(client: httpx.AsyncClient, world: World) -> None:
    """The answer is the view as JSON, and it is counted under its route."""
    answer = await client.get("/api/v1/state?pretty=1")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.content == to_json(STATE)
    assert world.facts == [HttpAnswered(route="/api/v1/state", status=200)]


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "code", "route"),
    [
        ("GET", "/nothing", {}, 404, "not_found", "other"),
        ("GET", "/api/v1/state/", {}, 404, "not_found", "other"),
        ("GET", "/", {}, 404, "not_found", "other"),
        ("GET", "/DEMO-1%0a%2e%2e", {}, 404, "not_found", "other"),
        ("GET", "/api/v1/state", {"host": "evil.example"}, 403, "forbidden", "/api/v1/state"),
        ("GET", "/metrics", {"origin": "http://evil.example"}, 403, "forbidden", "/metrics"),
        ("GET", "/metrics", {"x-forwarded-for": "1.2.3.4"}, 401, "unauthorized", "/metrics"),
        ("GET", "/secret", {"forwarded": "for=1.2.3.4"}, 401, "unauthorized", "other"),
        ("POST", "/api/v1/state", {}, 401, "unauthorized", "/api/v1/state"),
        (
            "POST",
            "/api/v1/state",
            {"authorization": "Bearer right"},
            405,
            "method_not_allowed",
            "/api/v1/state",
        ),
        ("BREW", "/livez", {"authorization": "Bearer right"}, 405, "method_not_allowed", "/livez"),
    ],
)
async def test_errors_have_one_shape_and_are_counted(
    client: httpx.AsyncClient,
    world: World,
    method: str,
    path: str,
    headers: dict[str, str],
    status: int,
    code: str,
    route: str,
) -> None:
    """An error names its code in JSON; unknown paths share one label."""
    answer = await client.request(method, path, headers=headers)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert error == {"code": code, "message": error["message"]}
    assert error["message"]
    assert world.facts == [HttpAnswered(route=route, status=status)]


async def test_a_crash_tells_the_client_nothing(client: httpx.AsyncClient, world: World) -> None:
    """An internal error has the common shape, no detail, and is counted."""
    world.broken = True

    answer = await client.get("/api/v1/state")

    assert answer.status_code == 500
    assert answer.json() == {
        "error": {
            "code": "internal_error",
            "message": "an internal error; the log has its details",
        }
    }
    assert world.facts == [HttpAnswered(route="/api/v1/state", status=500)]


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/api/v1/state", "/nothing"])
async def test_head_is_get_without_a_body(client: httpx.AsyncClient, path: str) -> None:
    """HEAD has the status and headers of GET, its length included."""
    got = await client.get(path)

    head = await client.head(path)

    assert head.status_code == got.status_code
    assert dict(head.headers) == dict(got.headers)


async def test_a_websocket_is_refused(world: World) -> None:
    """No route speaks WebSocket: the connection is closed before it is accepted, and counted."""
    access = Access(host="127.0.0.1", loopback=True, token="right")
    app = create_app(world.served(), access, world.facts.append)
    sent: list[object] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: object) -> None:
        sent.append(message)

    await app({"type": "websocket", "path": "/", "headers": []}, receive, send)

    assert sent == [{"type": "websocket.close", "code": 1000}]
    assert world.facts == [HttpAnswered(route="other", status=403)]
