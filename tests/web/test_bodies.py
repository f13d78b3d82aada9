"""Bodies of requests on real sockets: ignored, bounded in size and time, never kept."""

from __future__ import annotations

import httpx
import pytest
import trio
from starlette.types import Message
from trio.testing import MockClock

from sortie.web.middleware import BODY_LIMIT, BODY_SECONDS, read_body
from tests.web.conftest import World
from tests.web.test_server import connect, read_to_the_end, serving

HEAD = b"POST /api/v1/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer right\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


async def status_of(stream: trio.SocketStream) -> int:
    """Read an answer to the end of its connection and return its status."""
    with trio.fail_after(60):
        return int((await read_to_the_end(stream)).split(b" ")[1])


@pytest.mark.parametrize("size", [1, BODY_LIMIT])
async def test_a_body_is_ignored(world: World, size: int) -> None:
    """Whatever a body within the limit holds, the command is carried out."""
    async with serving(world) as listener, httpx.AsyncClient(base_url=listener.url) as client:
        answers = [
            await client.post(
                "api/v1/pause", content=b"x" * size, headers={"authorization": "Bearer right"}
            )
            for _ in range(2)
        ]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert world.commands == ["pause", "pause"]


@pytest.mark.parametrize("token", ["right", "wrong"])
@pytest.mark.parametrize("size", [BODY_LIMIT + 1, 20 * BODY_LIMIT])
async def test_a_large_body_is_refused(world: World, size: int, token: str) -> None:
    """One byte more is 413, and nothing is done; a stranger learns of the token first."""
    async with serving(world) as listener, httpx.AsyncClient(base_url=listener.url) as client:
        try:
            answer = await client.post(
                "api/v1/pause", content=b"x" * size, headers={"authorization": f"Bearer {token}"}
            )
        except (httpx.WriteError, httpx.ReadError):
            # Of a body that is far too large not everything is read before the connection ends.
            assert size > 16 * BODY_LIMIT
        else:
            assert answer.status_code == (413 if token == "right" else 401)

    assert world.commands == []


async def test_a_body_without_end_is_cut_off(world: World) -> None:
    """A chunked body that goes on and on ends its connection, and its reader."""
    chunk = (b"40\r\n" + bytes(64) + b"\r\n") * 1000
    async with serving(world) as listener:
        before = trio.lowlevel.current_statistics().tasks_living
        client = await connect(listener)
        await client.send_all(CHUNKED)
        with trio.fail_after(60), pytest.raises(trio.BrokenResourceError):
            while True:
                await client.send_all(chunk)
        await client.aclose()
        with trio.fail_after(60):
            while trio.lowlevel.current_statistics().tasks_living > before:
                await trio.sleep(0.05)

    assert world.commands == []


async def test_a_body_that_never_arrives_is_not_waited_for(world: World) -> None:
    """After some seconds it is 400, nothing is done, and others are answered meanwhile."""
    async with serving(world) as listener, httpx.AsyncClient() as other:
        client = await connect(listener)
        await client.send_all(HEAD + b"Content-Length: 9\r\n\r\nhalf")
        assert (await other.get(f"{listener.url}livez")).status_code == 200
        status = await status_of(client)
        await client.aclose()

    assert (status, world.commands) == (400, [])


@pytest.mark.parametrize("size", [0, 1, BODY_LIMIT])
async def test_bytes_that_trickle_in_win_no_time(autojump_clock: MockClock, size: int) -> None:
    """The time is that of the whole body, however often a part of it arrives."""
    parts = iter([size])

    async def receive() -> Message:
        await trio.sleep(1.0)
        return {"type": "http.request", "body": bytes(next(parts, 0)), "more_body": True}

    _, refusal = await read_body(receive)

    assert refusal is not None
    assert (refusal.status, trio.current_time()) == (400, BODY_SECONDS)


async def test_what_is_far_too_large_is_not_read_to_its_end() -> None:
    """An endless body of a fast client is given up after a megabyte, long before its time is up."""
    received = 0

    async def receive() -> Message:
        nonlocal received
        await trio.lowlevel.checkpoint()
        received += BODY_LIMIT
        assert received < 100 * BODY_LIMIT
        return {"type": "http.request", "body": bytes(BODY_LIMIT), "more_body": True}

    _, refusal = await read_body(receive)

    assert refusal is not None
    assert (refusal.status, received) == (413, 17 * BODY_LIMIT)


@pytest.mark.parametrize("token", ["right", "wrong"])
async def test_a_request_that_ends_in_two_places_is_answered_once(world: World, token: str) -> None:
    """What follows the first of its ends is not taken for another request."""
    both = (
        b"POST /api/v1/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
        + token.encode()
        + b"\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    async with serving(world) as listener:
        client = await connect(listener)
        await client.send_all(both)
        with trio.fail_after(60):
            answers = await read_to_the_end(client)
        await client.aclose()

    assert answers.count(b"HTTP/1.1 ") == 1
    assert answers.startswith(b"HTTP/1.1 400")
    assert world.commands == []
