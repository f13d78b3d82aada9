"""Live events over real sockets: what a client gets, and what it cannot do to others."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.facts import AdapterCrashed, HostNoticed, HttpAnswered
from sortie.model import LOCAL
from sortie.web import event_stream
from sortie.web.access import Access
from sortie.web.app import create_app
from sortie.web.broadcaster import BUFFER
from sortie.web.event_stream import StreamRoom
from sortie.web.listener import HttpListener, ListenAddress, listen
from sortie.web.server import serve
from sortie.web.state import to_json
from tests.web.conftest import STATE, World

GET = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n%b\r\n"
FACT = HostNoticed(host=LOCAL, message="anything")


@asynccontextmanager
async def serving(world: World) -> AsyncIterator[HttpListener]:
    access = Access(host="127.0.0.1", loopback=True, token="right")
    app = create_app(world.served(), access, world.facts.append)
    listener = await listen(ListenAddress(host="127.0.0.1", port=0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.live.run, world.facts.append)
        await nursery.start(serve, app, listener, world.facts.append)
        with trio.fail_after(30):
            yield listener
        nursery.cancel_scope.cancel()


async def follow(listener: HttpListener, header: bytes = b"") -> trio.SocketStream:
    stream = await trio.open_tcp_stream("127.0.0.1", listener.port)
    await stream.send_all(GET % header)
    return stream


async def read_until(stream: trio.SocketStream, end: bytes) -> bytes:
    received = b""
    while end not in received:
        chunk = await stream.receive_some()
        assert chunk, f"it ended with {received[-200:]!r}"
        received += chunk
    return received


async def is_ended(stream: trio.SocketStream) -> bool:
    try:
        while await stream.receive_some():
            pass
    except trio.BrokenResourceError:
        pass
    return True


async def listeners_become(world: World, number: int) -> None:
    while world.live.events.listeners != number:
        await trio.sleep(0.01)


async def test_a_client_gets_the_state_and_its_changes(world: World) -> None:
    """As server-sent events that are not cached, counted as one answer."""
    async with serving(world) as listener:
        client = await follow(listener)
        first = await read_until(client, b"\n\n")
        world.state = dataclasses.replace(STATE, status="paused")
        world.live.notify(FACT)
        second = await read_until(client, b"\n\n")
        await client.aclose()
        await listeners_become(world, 0)

    head, _, body = first.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"content-type: text/event-stream; charset=utf-8" in head
    assert b"cache-control: no-store" in head
    assert b"id: life-0\nevent: state\ndata: %b\n\n" % to_json(STATE) in body
    assert b"id: life-1\nevent: changes\n" in second
    (data,) = (line[6:] for line in second.split(b"\n") if line.startswith(b"data: "))
    assert json.loads(data)["state"]["status"] == "paused"
    assert world.facts.count(HttpAnswered(route="/api/v1/events", status=200)) == 1


@pytest.mark.parametrize("way", ["header", "parameter"])
async def test_a_client_goes_on_where_it_was_cut_off(world: World, way: str) -> None:
    """By the header that browsers send, or by a parameter of a page's first request."""
    async with serving(world) as listener, httpx.AsyncClient() as client:
        world.live.events.look_now()
        world.state = dataclasses.replace(STATE, status="paused")
        world.live.events.look_now()
        headers = {"last-event-id": "life-0"} if way == "header" else {}
        params = {"last_event_id": "life-0"} if way == "parameter" else {}
        url = f"{listener.url}api/v1/events"
        async with client.stream("GET", url, headers=headers, params=params) as answer:
            lines = answer.aiter_lines()
            told = [await anext(lines) for _ in range(2)]

    assert told == ["id: life-1", "event: changes"]


async def test_silence_is_broken_by_a_comment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that nobody on the way takes the connection for dead."""
    monkeypatch.setattr(event_stream, "HEARTBEAT", 0.05)
    async with serving(world) as listener:
        client = await follow(listener)
        await read_until(client, b"\n\n")
        told = await read_until(client, b"\n\n")
        await client.aclose()

    assert b": still here\n\n" in told


async def test_streams_leave_connections_for_others(world: World) -> None:
    """Beyond their number a client is told to come back, and a place that is left is given anew."""
    world.live = replace(world.live, room=StreamRoom(8))
    async with serving(world) as listener, httpx.AsyncClient() as other:
        followers = [await follow(listener) for _ in range(2)]
        for follower in followers:
            await read_until(follower, b"\n\n")

        refused = await other.get(f"{listener.url}api/v1/events")
        state = await other.get(f"{listener.url}api/v1/state")
        await followers[0].aclose()
        await listeners_become(world, 1)
        third = await follow(listener)
        told = await read_until(third, b"\n\n")
        for stream in (followers[1], third):
            await stream.aclose()

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert refused.json()["error"]["code"] == "unavailable"
    assert state.status_code == 200
    assert told.startswith(b"HTTP/1.1 200")


async def test_a_client_that_reads_nothing_is_cut_off(world: World) -> None:
    """Once so many updates lie unread its connection is closed; others miss nothing."""
    (held,) = STATE.held
    async with serving(world) as listener:
        deaf, quick = await follow(listener), await follow(listener)
        await listeners_become(world, 2)
        number = 0
        while world.live.events.listeners == 2:
            number += 1
            detail = f"{number} " + "x" * 1_000_000
            world.state = dataclasses.replace(
                STATE, held=(dataclasses.replace(held, detail=detail),)
            )
            world.live.events.look_now()
            await read_until(quick, b"event: changes\n")
            await read_until(quick, b"\n\n")
        ended = await is_ended(deaf)
        world.state = STATE
        world.live.events.look_now()
        told = await read_until(quick, b"\n\n")
        for stream in (deaf, quick):
            await stream.aclose()

    assert ended
    assert number > BUFFER
    assert b"id: life-%d\n" % (number + 1) in told


async def test_a_client_that_is_stuck_is_cut_off(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where little happens: what cannot be sent for long ends with its connection."""
    monkeypatch.setattr(event_stream, "STUCK", 0.2)
    (held,) = STATE.held
    world.state = dataclasses.replace(
        STATE, held=(dataclasses.replace(held, detail="x" * 64_000_000),)
    )
    async with serving(world) as listener:
        deaf = await follow(listener)
        await listeners_become(world, 1)
        await listeners_become(world, 0)
        ended = await is_ended(deaf)
        await deaf.aclose()

    assert ended


async def test_a_stream_ends_after_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """In good order, so that its client comes back and is asked anew who it is."""
    monkeypatch.setattr(event_stream, "STREAM_SECONDS", 0.05)
    async with serving(world) as listener, httpx.AsyncClient() as client:
        answer = await client.get(f"{listener.url}api/v1/events")

    assert answer.text.startswith("id: life-0\nevent: state\n")
    assert answer.text.endswith("\n\n")


async def test_a_view_that_fails_ends_streams_and_nothing_else(
    world: World, autojump_clock: MockClock
) -> None:
    """It is told with its traceback; the next who comes is served once it works again."""
    events = world.live.events
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.live.run, world.facts.append)
        with events.listening(None) as listener:
            await listener.next_block()
            world.broken = True
            with trio.fail_after(60):
                ended = await listener.next_block()
        world.broken = False
        await trio.sleep(event_stream._FAILED_FEED_PAUSE)
        with events.listening(None) as listener:
            await listener.next_block()
            world.state = dataclasses.replace(STATE, status="paused")
            with trio.fail_after(60):
                told = await listener.next_block()
        nursery.cancel_scope.cancel()

    assert ended is None
    assert told is not None
    (crash,) = (fact for fact in world.facts if isinstance(fact, AdapterCrashed))
    assert (crash.where, "a detail that no client" in crash.traceback) == ("live events", True)


async def test_an_answer_is_no_change(world: World) -> None:
    """Requests that are counted do not have the state looked at, or looking would never end."""
    async with serving(world) as listener:
        client = await follow(listener)
        await read_until(client, b"\n\n")
        world.live.notify(HttpAnswered(route="/livez", status=200))
        stirred = world.live.events.is_notified
        world.live.notify(FACT)
        await client.aclose()

    assert not stirred
