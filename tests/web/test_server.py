"""The server on real sockets: it answers, survives bad clients, and ends at once."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import psutil
import pytest
import trio
import trio.testing
from starlette.types import ASGIApp, Receive, Scope, Send

from sortie.facts import AdapterCrashed, HttpAnswered, HttpListening
from sortie.resources import Shortages, keep_account
from sortie.web.access import Access
from sortie.web.app import create_app
from sortie.web.listener import HttpListener, ListenAddress, listen
from sortie.web.server import MAX_CONNECTIONS, serve
from tests.resources.scarcity import descriptors_left
from tests.web.conftest import World

GET = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
ENDS_WITHIN = 4.0
"""Seconds, less than those for which it waits for a request."""


def application(world: World) -> ASGIApp:
    access = Access(host="127.0.0.1", loopback=True, token="right")
    return create_app(world.served(), access, world.facts.append)


@asynccontextmanager
async def serving(world: World, app: ASGIApp | None = None) -> AsyncIterator[HttpListener]:
    """Serve for the length of the block; fail when ending takes long."""
    listener = await listen(ListenAddress(host="127.0.0.1", port=0))
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, app or application(world), listener, world.facts.append)
        with trio.fail_after(20):
            yield listener
        nursery.cancel_scope.cancel()
        began = trio.current_time()
    assert trio.current_time() - began < ENDS_WITHIN


async def connect(listener: HttpListener) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", listener.port)


async def read_to_the_end(stream: trio.SocketStream) -> bytes:
    received = b""
    try:
        async for chunk in stream:
            received += chunk
    except trio.BrokenResourceError:
        pass  # reset, rather than closed
    return received


async def test_it_answers_over_one_connection_again_and_again(world: World) -> None:
    """Keep-alive works, over real HTTP, and the URL is told before the first request."""
    async with serving(world) as listener, httpx.AsyncClient(base_url=listener.url) as client:
        answers = [await client.get("/livez") for _ in range(3)]

        assert [(answer.status_code, answer.json()) for answer in answers] == [
            (200, {"status": "ok"})
        ] * 3
        assert "server" not in answers[0].headers

    answered = HttpAnswered(route="/livez", status=200)
    assert world.facts == [HttpListening(url=listener.url), answered, answered, answered]


async def test_it_ends_at_once_whatever_clients_hold_open(world: World) -> None:
    """Idle, half-open and half-asked connections do not hold up the end (see ``serving``)."""
    async with serving(world) as listener:
        idle = await connect(listener)
        await idle.send_all(GET)
        await idle.receive_some()
        silent = await connect(listener)
        halfway = await connect(listener)
        await halfway.send_all(GET[:20])
        bodiless = await connect(listener)
        await bodiless.send_all(
            b"POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
        )

    for stream in (idle, silent, halfway, bodiless):
        with trio.fail_after(20):
            await read_to_the_end(stream)
        await stream.aclose()


async def test_a_client_that_reads_nothing_does_not_hold_up_the_end(world: World) -> None:
    """An answer that is stuck in a send ends with the server."""

    async def huge(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(64 * 1024 * 1024)})

    async with serving(world, huge) as listener:
        client = await connect(listener)
        await client.send_all(GET)
        await trio.testing.wait_all_tasks_blocked()  # more is being sent than buffers can hold

    await client.aclose()


async def test_a_request_under_way_does_not_hold_up_the_end(world: World) -> None:
    """An application that never answers is cancelled."""
    asked = trio.Event()

    async def sleepy(_scope: Scope, _receive: Receive, _send: Send) -> None:
        asked.set()
        await trio.sleep_forever()

    async with serving(world, sleepy) as listener:
        client = await connect(listener)
        await client.send_all(GET)
        await asked.wait()

    await client.aclose()


async def test_a_flood_of_clients_takes_only_so_many_files(world: World) -> None:
    """Beyond the limit the oldest connection makes room, and the newest is answered."""
    async with serving(world) as listener:
        flood = [await connect(listener) for _ in range(MAX_CONNECTIONS * 2)]
        await flood[-1].send_all(GET)
        answer = await flood[-1].receive_some()

        ours = [
            connection
            for connection in psutil.Process().net_connections("tcp")
            if connection.status == psutil.CONN_ESTABLISHED
            and connection.laddr.port == listener.port
        ]
        assert answer.startswith(b"HTTP/1.1 200")
        assert len(ours) == MAX_CONNECTIONS
        assert await read_to_the_end(flood[0]) == b""
        for stream in flood:
            await stream.aclose()


async def test_the_time_for_a_request_is_limited(world: World) -> None:
    """A client that dribbles half a request is cut off after the keep-alive time."""
    async with serving(world) as listener:
        client = await connect(listener)
        began = trio.current_time()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(_dribble, client)
            await read_to_the_end(client)
            nursery.cancel_scope.cancel()

        assert trio.current_time() - began > 4
        await client.aclose()


async def _dribble(stream: trio.SocketStream) -> None:
    await stream.send_all(b"GET /livez HTTP/1.1\r\n")
    try:
        while True:
            await stream.send_all(b"X: y\r\n")
            await trio.sleep(0.25)
    except trio.BrokenResourceError:
        pass


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x00" * 100 + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", 431),
        (b"GET /api/v1/state HTTP/1.0\r\n\r\n", 403),
        (b"GET /livez HTTP/1.0\r\n\r\n", 200),
        (
            b"GET http://localhost/livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            404,
        ),
        (
            b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            403,
        ),
    ],
)
async def test_odd_requests_get_their_status(world: World, sent: bytes, status: int) -> None:
    """What is no proper request for us is refused, and the server goes on."""
    async with serving(world) as listener:
        client = await connect(listener)
        await client.send_all(sent)
        answer = await read_to_the_end(client)
        await client.aclose()

        assert answer.split(b" ")[1] == str(status).encode()
        async with httpx.AsyncClient() as other:
            assert (await other.get(f"{listener.url}livez")).status_code == 200


async def test_a_connection_that_crashes_the_library_ends_alone(world: World) -> None:
    """Bytes that the HTTP library cannot bear end their connection, are told, and no more."""
    sent = (
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\n"
        b"Connection: upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAAA\r\n\r\n"
    )
    async with serving(world) as listener:
        for _ in range(5):
            client = await connect(listener)
            await client.send_all(sent)
            await client.send_eof()
            await read_to_the_end(client)
            await client.aclose()
        async with httpx.AsyncClient() as other:
            assert (await other.get(f"{listener.url}livez")).status_code == 200

    crashes = [fact.where for fact in world.facts if isinstance(fact, AdapterCrashed)]
    assert crashes == [f"an HTTP connection ({count} so far)" for count in (1, 2, 4)]


async def test_without_descriptors_the_oldest_connection_makes_room(world: World) -> None:
    """A newcomer is answered, the shortage is taken down, and no library fills the log."""
    account = Shortages()
    keep_account(account)
    async with serving(world) as listener:
        idle = [await connect(listener) for _ in range(5)]
        await trio.testing.wait_all_tasks_blocked()
        newcomer = socket.socket()
        newcomer.setblocking(False)
        with descriptors_left(1):
            held = os.open(os.devnull, os.O_RDONLY)
            await trio.socket.from_stdlib_socket(newcomer).connect(("127.0.0.1", listener.port))
            client = trio.SocketStream(trio.socket.from_stdlib_socket(newcomer))
            await client.send_all(GET)
            answer = await client.receive_some()
            os.close(held)
        told = account.shortages
        gone = await read_to_the_end(idle[0])
        for stream in (*idle, client):
            await stream.aclose()

    assert answer.startswith(b"HTTP/1.1 200")
    assert gone == b""
    assert "limit of open files" in told[0]
