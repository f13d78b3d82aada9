"""Ways to get in that others have tried, against every route there is."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
import trio
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes
from msgspec.structs import replace
from starlette.routing import Route

from sortie.facts import HttpAnswered
from sortie.web.access import PROBES, SIGN_IN, Access
from sortie.web.app import create_app, routes_of
from sortie.web.listener import HttpListener, ListenAddress, listen
from sortie.web.server import MAX_CONNECTIONS, serve
from sortie.web.sessions import BrowserSessions
from tests.web.conftest import World

TOKEN = "right-" + "x" * 40
URL = "http://localhost:7678"
ACCESS = Access(
    host="127.0.0.1", loopback=True, token=TOKEN, sessions=BrowserSessions(trio.current_time)
)
STRANGE_HOSTS = (
    "evil.example",
    "evil.example:7678",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1@evil.example",
    "0x7f000001.evil.example",
    "localhost:7678@evil.example",
    "169.254.169.254",
    "localhost evil.example",
    "",
)


def routes() -> list[Route]:
    world = World()
    return routes_of(world.served(), ACCESS)


def concrete(path: str) -> str:
    for name in ("identifier", "run_id"):
        path = path.replace(f"{{{name}}}", "DEMO-1")
    return path


PATHS = sorted({concrete(route.path) for route in routes()})
COMMANDS = sorted(concrete(route.path) for route in routes() if "POST" in (route.methods or ()))


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(world.served(), ACCESS, world.facts.append)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
        yield client


@pytest.mark.parametrize("path", [*(path for path in PATHS if path not in PROBES), "/nothing"])
async def test_a_rebound_name_gets_nothing_anywhere(
    client: httpx.AsyncClient, world: World, path: str
) -> None:
    """A page whose name was let point here sends its own name as Host; no route but the probes
    answers it, with the token or without, and each refusal is counted."""
    method = "POST" if path in COMMANDS else "GET"
    for host in STRANGE_HOSTS:
        for headers in ({}, {"authorization": f"Bearer {TOKEN}"}):
            answer = await client.request(method, path, headers={**headers, "host": host})
            assert answer.status_code == 403, (host, headers)

    assert world.commands == []
    counted = [fact for fact in world.facts if isinstance(fact, HttpAnswered)]
    assert [fact.status for fact in counted] == [403] * (2 * len(STRANGE_HOSTS))


@pytest.mark.parametrize("path", COMMANDS)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:3000"}, 401),
        ({"origin": URL}, 401),
        ({"origin": URL, "sec-fetch-site": "same-origin"}, 401),
        ({"content-type": "application/x-www-form-urlencoded"}, 401),
        ({"content-type": "text/plain", "origin": "http://evil.example"}, 403),
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer"}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"authorization": "Bearer null"}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": f"Bearer {TOKEN.upper()}"}, 401),
        ({"authorization": f"Bearer {TOKEN} {TOKEN}"}, 401),
        ({"authorization": "Bearer " + "x" * 15_000}, 401),
        ({"cookie": f"token={TOKEN}; session={TOKEN}"}, 401),
        ({"x-authorization": f"Bearer {TOKEN}"}, 401),
        ({"x-http-method-override": "GET"}, 401),
    ],
)
async def test_a_command_without_the_token_does_nothing(
    client: httpx.AsyncClient, world: World, path: str, headers: dict[str, str], status: int
) -> None:
    """From another site, with a wrong, empty or overlong token, or with it in the wrong place."""
    answer = await client.post(path, headers=headers, content=b"_method=GET&confirmed=1")

    assert (answer.status_code, world.commands) == (status, [])
    assert TOKEN not in answer.text + str(answer.headers)


@pytest.mark.parametrize("query", [f"token={TOKEN}", f"access_token={TOKEN}", f"code={TOKEN}"])
async def test_the_token_is_taken_from_no_address(
    client: httpx.AsyncClient, world: World, query: str
) -> None:
    """Addresses are kept in histories and logs."""
    command = await client.post(f"/api/v1/pause?{query}")
    page = await client.get(f"{SIGN_IN}?{query}")

    assert (command.status_code, page.status_code, world.commands) == (401, 403, [])


@pytest.mark.parametrize(
    "name", ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"]
)
@pytest.mark.parametrize("path", PATHS)
async def test_what_a_proxy_hands_on_needs_the_token(
    client: httpx.AsyncClient, path: str, name: str
) -> None:
    """It may serve strangers; only the link, which is a credential itself, does without."""
    method = "POST" if path in COMMANDS else "GET"

    answer = await client.request(method, path, headers={name: "127.0.0.1"})

    assert answer.status_code == (403 if path == SIGN_IN else 401)


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/api/v1/events"])
async def test_a_page_of_another_site_can_read_nothing(
    client: httpx.AsyncClient, path: str
) -> None:
    """No answer allows another origin, may be framed, guessed to be of another type, or kept."""
    for method in ("GET", "POST", "OPTIONS"):
        answer = await client.request(
            method,
            path,
            headers={"authorization": f"Bearer {TOKEN}", "access-control-request-method": "POST"},
        )
        headers = answer.headers
        assert not [name for name in headers if name.startswith("access-control-")]
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; ")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy


class Sockets:
    """Connections to a server, written by hand."""

    def __init__(self, listener: HttpListener) -> None:
        self._listener = listener

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self._listener.port)

    async def told(self, sent: bytes) -> bytes:
        """Return all that is answered to some bytes."""
        stream = await self.connect()
        received = b""
        with trio.fail_after(60):
            await stream.send_all(sent)
            await stream.send_eof()
            try:
                async for chunk in stream:
                    received += chunk
            except trio.BrokenResourceError:
                pass
        await stream.aclose()
        return received


@pytest.fixture
async def sockets(world: World) -> AsyncIterator[Sockets]:
    access = replace(ACCESS, sessions=BrowserSessions(trio.current_time))
    app = create_app(world.served(), access, world.facts.append)
    listener = await listen(ListenAddress(host="127.0.0.1", port=0))
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, app, listener, world.facts.append)
        yield Sockets(listener)
        nursery.cancel_scope.cancel()


HIDDEN = b"POST /api/v1/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n\r\n"


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5",
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 5, 6",
        b"Content-Length: +5",
        b"Content-Length: -1",
        b"Content-Length: 0x5",
        b"Content-Length: 5 5",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding : chunked",
        b"Transfer-Encoding: \x0bchunked",
    ],
)
async def test_nothing_is_smuggled_in_a_body(
    sockets: Sockets, world: World, framing: bytes
) -> None:
    """Where two readers could see different ends, there is one answer, an error, and what follows
    is no request."""
    smuggled = b"0\r\n\r\n" + HIDDEN % TOKEN.encode()
    head = b"POST /api/v1/resume HTTP/1.1\r\nHost: localhost\r\n"
    head += b"Authorization: Bearer " + TOKEN.encode() + b"\r\n"

    told = await sockets.told(head + framing + b"\r\n\r\n" + smuggled)

    assert told.count(b"HTTP/1.1 ") == 1
    assert told.split(b" ")[1] in (b"400", b"501")
    assert world.commands == []


@pytest.mark.parametrize(
    "line",
    [
        b"GET /api/v1/state\r\n\r\n",
        b"GET  /api/v1/state  HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://evil.example/api/v1/state HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET /api/v1/state HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(200),
        b"\r\n" * 200,
    ],
)
async def test_odd_bytes_get_no_state(sockets: Sockets, line: bytes) -> None:
    """Whatever is no request of our kind, the state is not told for it, and the next is served."""
    told = await sockets.told(line)
    after = await sockets.told(
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )

    assert b"generated_at" not in told
    assert after.startswith(b"HTTP/1.1 200")


async def test_a_hundred_slow_clients_keep_nobody_out(sockets: Sockets, world: World) -> None:
    """Each holds a connection with half a request; a newcomer is answered all the same."""
    slow = [await sockets.connect() for _ in range(MAX_CONNECTIONS + 20)]
    for stream in slow:
        try:
            await stream.send_all(b"POST /api/v1/pause HTTP/1.1\r\nHost: local")
        except trio.BrokenResourceError:
            pass  # it has made room already

    told = await sockets.told(
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )

    assert told.startswith(b"HTTP/1.1 200")
    assert world.commands == []
    for stream in slow:
        await stream.aclose()


async def test_nothing_is_kept_for_a_client_of_http_2(sockets: Sockets, world: World) -> None:
    """Which opens many requests and lets no answer through: each is refused in a sentence, none
    becomes a stream or a command."""
    client = H2Connection(H2Configuration(client_side=True))
    client.local_settings[SettingCodes.INITIAL_WINDOW_SIZE] = 0
    client.initiate_connection()
    asked = (("GET", "/api/v1/events"), ("GET", "/api/v1/state"), ("POST", "/api/v1/pause"))
    for method, path in asked:
        client.send_headers(
            client.get_next_available_stream_id(),
            [
                (":method", method),
                (":path", path),
                (":scheme", "http"),
                (":authority", "localhost"),
                ("authorization", f"Bearer {TOKEN}"),
            ],
            end_stream=True,
        )
    stream = await sockets.connect()
    await stream.send_all(client.data_to_send())

    with trio.fail_after(60):
        while len(world.facts) < 1 + len(asked):
            await trio.sleep(0.01)
    await stream.aclose()

    assert [fact.status for fact in world.facts if isinstance(fact, HttpAnswered)] == [505] * 3
    assert (world.live.events.listeners, world.live.room.taken, world.commands) == (0, 0, [])
