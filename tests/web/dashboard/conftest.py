"""One served dashboard for each module of tests, made up anew for each test."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.web.dashboard.served import Served, World, served


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """A dashboard on a socket."""
    with served() as running:
        yield running


@pytest.fixture
def world(server: Served) -> World:
    """What it shows; a test may change it."""
    server.world.begin_anew()
    return server.world


@pytest.fixture
def visitor(server: Served, world: World) -> Iterator[httpx.Client]:
    """Somebody on this machine who has not signed in."""
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
def operator(server: Served, world: World) -> Iterator[httpx.Client]:
    """Somebody who has signed in with a browser."""
    headers = {"origin": server.url}
    with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:
        assert client.get(server.sign_in_path()).status_code == 200
        yield client
