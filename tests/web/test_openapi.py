"""The OpenAPI document: that it is one, tells of every route, and that the daemon keeps to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_spec_validator import validate

from sortie.web import event_stream
from sortie.web.access import Access
from sortie.web.app import create_app, operations_of, routes_of
from sortie.web.openapi import document
from sortie.web.sessions import BrowserSessions
from tests.web.conftest import World
from tests.web.live_server import TOKEN, live_server

ACCESS = Access(host="127.0.0.1", loopback=True, token=TOKEN, sessions=BrowserSessions(lambda: 0.0))
PAGES = {"/sign-in", "/sign-out"}
_SECURITY: dict[str, list[dict[str, list[str]]]] = {
    "get": [{}, {"token": []}],
    "post": [{"token": []}],
}


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    world = World()
    return document(operations_of(world.served(), ACCESS))


def test_it_is_an_openapi_document(told: dict[str, Any]) -> None:
    """By the specification's own schema, with an id of its own for each operation."""
    validate(told)

    ids = [
        operation["operationId"] for path in told["paths"].values() for operation in path.values()
    ]
    assert len(ids) == len(set(ids))


def test_it_tells_of_every_route(told: dict[str, Any], world: World) -> None:
    """And of no other; pages are for people."""
    routes = routes_of(world.served(), ACCESS)

    served = {(route.path, method.lower()) for route in routes for method in route.methods or ()}
    written = {(path, method) for path, methods in told["paths"].items() for method in methods}
    assert {(path, m) for path, m in served if path not in PAGES and m != "head"} == written


async def test_it_is_served_as_it_is_made(told: dict[str, Any], world: World) -> None:
    """By the route that it names itself, made once."""
    app = create_app(world.served(), ACCESS, world.facts.append)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        first = await client.get("/api/v1/openapi.json")
        second = await client.get("/api/v1/openapi.json")

    assert first.json() == told
    assert first.content == second.content


def test_every_command_needs_the_token(told: dict[str, Any]) -> None:
    """And a look needs nothing that the document could promise."""
    for methods in told["paths"].values():
        for method, operation in methods.items():
            assert operation["security"] == _SECURITY[method]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, live_server() as url:
        patch.setattr(
            event_stream, "STREAM_SECONDS", 0.02
        )  # a stream without end would never be judged
        yield url


@pytest.mark.parametrize(
    ("examples", "seed"),
    [("5", "1"), pytest.param("200", None, marks=[pytest.mark.full, pytest.mark.timeout(2000)])],
    ids=["few", "many"],
)
def test_the_daemon_keeps_to_it_whatever_is_sent(
    server: str, tmp_path: Path, examples: str, seed: str | None
) -> None:
    """Schemathesis sends what the document allows and what it does not: no answer is a 500, each
    has a status, type and shape that the document tells, and what it forbids is refused."""
    command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"]
    options = ["--max-examples", examples, "--no-color", "--generation-database", ":memory:"]
    options += ["--header", f"Authorization: Bearer {TOKEN}"]
    # The runs there have changed nothing, so that a diff is 404 for all of them.
    options += ["--warnings", "missing_auth,validation_mismatch"]
    if seed is not None:
        options += ["--seed", seed]

    ran = subprocess.run(
        [*command, "run", f"{server}api/v1/openapi.json", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=1900 if seed is None else 300,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "No issues found" in ran.stdout, ran.stdout
