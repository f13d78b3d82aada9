"""The port is there at once, and what answers on it after the first poll."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from jinja2 import TemplateSyntaxError

from sortie.daemon import http_server, http_service
from sortie.daemon.daemon_view import DaemonView
from sortie.daemon.http_service import HttpService
from sortie.telemetry import facts
from sortie.web.dashboard.routes import Dashboard
from tests.orchestrator.daemon_view import view_of
from tests.orchestrator.world import World
from tests.ports import free_port
from tests.worker.rig import settings_of

RELOADED = facts.WorkflowReloaded()
POLLED = facts.PollCompleted(result="success", seconds=0.1)
RELOADS = 'sortie_workflow_reloads_total{result="success"}'


@asynccontextmanager
async def started(service: HttpService, world: World, port: int) -> AsyncIterator[str | None]:
    """Have a service started, and end it with the block."""
    settings = settings_of(server={"port": port})
    async with world.life_cut_short() as orchestrator, trio.open_nursery() as nursery:
        view = view_of(orchestrator)
        with trio.fail_after(30):
            yield await service.start(nursery, settings, "token", view)
        nursery.cancel_scope.cancel()


async def test_who_asks_before_the_first_poll_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client can connect as soon as the address is known, and is answered after the poll."""
    monkeypatch.setattr(http_service, "FIRST_POLL", 1000.0)
    world = World()
    service = HttpService(world.publish)

    async with started(service, world, free_port()) as url, httpx.AsyncClient() as client:
        assert url is not None
        answers: list[httpx.Response] = []

        async def ask() -> None:
            answers.append(await client.get(f"{url}livez", timeout=20))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(0.3)
            waiting = not answers
            service(POLLED)

    assert waiting
    assert [answer.status_code for answer in answers] == [200]


async def test_a_poll_that_hangs_keeps_nobody_from_an_answer() -> None:
    """The server comes without it, a little later."""
    world = World()
    service = HttpService(world.publish)

    async with started(service, world, free_port()) as url, httpx.AsyncClient() as client:
        answer = await client.get(f"{url}readyz", timeout=20)

    assert answer.status_code in (200, 503)


async def test_what_was_published_before_is_counted() -> None:
    """Metrics know all facts of this life, each once."""
    world = World()
    service = HttpService(world.publish)
    service(RELOADED)
    service(POLLED)

    async with started(service, world, free_port()) as url, httpx.AsyncClient() as client:
        first = await client.get(f"{url}metrics", timeout=20)
        service(RELOADED)
        second = await client.get(f"{url}metrics", timeout=20)

    assert f"{RELOADS} 1.0" in first.text
    assert f"{RELOADS} 2.0" in second.text


async def test_without_a_port_nothing_is_kept() -> None:
    """Where nobody can ask, facts are neither counted nor remembered."""
    world = World()
    service = HttpService(world.publish)
    service(RELOADED)

    async with started(service, world, 0) as url:
        service(RELOADED)

    assert url is None
    assert service._kept == []


async def test_the_port_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the service ends before it has begun to answer."""
    monkeypatch.setattr(http_service, "FIRST_POLL", 1000.0)
    world, port = World(), free_port()

    async with started(HttpService(world.publish), world, port) as url:
        assert url is not None

    async with started(HttpService(world.publish), world, port) as again:
        assert again == url


def out_of_descriptors() -> OSError:
    return OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def broken_template() -> TemplateSyntaxError:
    error = TemplateSyntaxError("unicode_escape.py", 12)
    error.__cause__ = out_of_descriptors()
    return error


@pytest.mark.parametrize(
    "error",
    [
        out_of_descriptors(),
        ImportError(f"_ssl.so: cannot open shared object file: {os.strerror(errno.EMFILE)}"),
        broken_template(),
    ],
)
async def test_a_server_that_cannot_be_read_for_want_of_descriptors_comes_later(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Libraries and templates are read again; what is published meanwhile is counted."""
    world = World()
    service = HttpService(world.publish)
    refused: list[str] = []
    make = Dashboard

    def make_later(view: DaemonView, *named: str) -> Dashboard:
        if len(refused) < 2:
            refused.append("pages")
            service(RELOADED)
            raise error
        return make(view, *named)

    monkeypatch.setattr(http_server, "Dashboard", make_later)
    service(POLLED)

    async with started(service, world, free_port()) as url, httpx.AsyncClient() as client:
        assert url is not None
        answer = await client.get(url, timeout=20)
        metrics = await client.get(f"{url}metrics", timeout=20)

    assert answer.status_code == 200
    assert len(refused) == 2
    assert f"{RELOADS} 2.0" in metrics.text
