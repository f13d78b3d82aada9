"""Signing a browser in and out, and what a session may and may not do."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
import trio

from sortie.web.access import Access
from sortie.web.app import create_app
from sortie.web.sessions import BrowserSessions
from tests.web.conftest import World

URL = "http://localhost:7678"
OWN = {"origin": URL}
HOLDER = {"authorization": "Bearer right"}


@pytest.fixture
def sessions() -> BrowserSessions:
    return BrowserSessions(trio.current_time)


def client_of(
    world: World, sessions: BrowserSessions, *, loopback: bool = True
) -> httpx.AsyncClient:
    access = Access(
        host="127.0.0.1" if loopback else "localhost",
        loopback=loopback,
        token="right",
        sessions=sessions,
    )
    app = create_app(world.served(), access, world.facts.append)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=URL)


@pytest.fixture
async def client(world: World, sessions: BrowserSessions) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(world, sessions) as client:
        yield client


async def link(client: httpx.AsyncClient) -> str:
    answer = await client.post("/api/v1/sign-in", headers=HOLDER)
    assert answer.status_code == 200
    return str(answer.json()["path"])


async def signed_in(client: httpx.AsyncClient) -> httpx.Response:
    return await client.get(await link(client))


async def test_a_link_signs_a_browser_in_once(
    client: httpx.AsyncClient, sessions: BrowserSessions
) -> None:
    """The holder of the token gets a link; who follows it gets a cookie that scripts cannot read
    and other sites' pages do not send; the next one gets none."""
    answer = await client.post("/api/v1/sign-in", headers=HOLDER)
    path = answer.json()["path"]
    first = await client.get(path)
    client.cookies.clear()
    second = await client.get(path)

    assert answer.json() == {"path": path, "expires_in": 120}
    assert path.startswith("/sign-in?code=")
    assert first.status_code == 200
    assert 'url=/"' in first.text
    cookie = first.headers["set-cookie"].lower()
    name, *attributes = cookie.split("; ")
    assert name.startswith(f"{sessions.cookie}=")
    assert set(attributes) == {"httponly", "max-age=43200", "path=/", "samesite=strict"}
    assert (second.status_code, "set-cookie" in second.headers) == (403, False)
    assert "sortie open" in second.text


async def test_a_session_gives_commands_from_its_own_page(
    client: httpx.AsyncClient, world: World
) -> None:
    """With the Origin of the very page, port included."""
    await signed_in(client)

    answer = await client.post("/api/v1/pause", headers=OWN)

    assert answer.status_code == 200
    assert world.commands == ["pause"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://localhost:3000"},
        {"origin": "http://localhost"},
        {"origin": "http://127.0.0.1:7678"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "file://"},
        {"origin": "localhost:7678"},
        {"origin": "ftp://localhost:7678"},
        {"origin": "http://user@localhost:7678"},
        {"origin": "http://localhost:7678/x"},
        {"origin": URL, "sec-fetch-site": "same-site"},
        {"origin": URL, "sec-fetch-site": "cross-site"},
        {"referer": f"{URL}/"},
    ],
)
async def test_a_command_from_elsewhere_is_refused(
    client: httpx.AsyncClient, world: World, headers: dict[str, str]
) -> None:
    """A browser sends the cookie with what other programs' pages on this machine make it send."""
    await signed_in(client)

    answer = await client.post("/api/v1/pause", headers=headers)

    assert (answer.status_code, world.commands) == (403, [])


@pytest.mark.parametrize("cookie", ["", "x", "x" * 5000, "{name}", "{name}=", "{name}=x"])
async def test_a_cookie_that_is_no_session_is_nobody(
    client: httpx.AsyncClient, world: World, sessions: BrowserSessions, cookie: str
) -> None:
    """A command with it is refused for want of the token."""
    written = cookie.format(name=sessions.cookie)
    await link(client)

    answer = await client.post("/api/v1/pause", headers={**OWN, "cookie": written})

    assert (answer.status_code, world.commands) == (401, [])


async def test_a_session_signs_nobody_else_in(client: httpx.AsyncClient) -> None:
    """Or a browser could stay signed in for ever, and hand that on."""
    await signed_in(client)

    answer = await client.post("/api/v1/sign-in", headers=OWN)

    assert answer.status_code == 403


async def test_signing_out_ends_the_session(client: httpx.AsyncClient, world: World) -> None:
    """Also for whoever has kept the cookie."""
    cookie = (await signed_in(client)).headers["set-cookie"].split(";")[0]

    answer = await client.post("/sign-out", headers=OWN)
    again = await client.post("/api/v1/pause", headers={**OWN, "cookie": cookie})

    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "max-age=0" in answer.headers["set-cookie"].lower()
    assert (again.status_code, world.commands) == (401, [])


async def test_another_site_cannot_sign_a_browser_out(client: httpx.AsyncClient) -> None:
    """Signing out is a command."""
    await signed_in(client)

    refused = await client.post("/sign-out", headers={"origin": "http://localhost:3000"})

    assert refused.status_code == 403
    assert (await client.post("/api/v1/pause", headers=OWN)).status_code == 200


async def test_a_look_at_the_link_uses_up_nothing(client: httpx.AsyncClient) -> None:
    """Programs that look at links before people do ask with HEAD."""
    path = await link(client)

    looked = await client.head(path)
    followed = await client.get(path)

    assert (looked.status_code, followed.status_code) == (403, 200)


async def test_elsewhere_than_on_loopback_a_session_may_read(
    world: World, sessions: BrowserSessions
) -> None:
    """There everything needs the token or a session, but for the link itself."""
    async with client_of(world, sessions, loopback=False) as client:
        stranger = await client.get("/api/v1/state")
        welcome = await signed_in(client)
        state = await client.get("/api/v1/state")
        forwarded = await client.get("/api/v1/state", headers={"x-forwarded-for": "10.0.0.1"})

    assert [a.status_code for a in (stranger, welcome, state, forwarded)] == [401, 200, 200, 200]


async def test_who_is_not_signed_in_is_told_how_on_a_page(
    world: World, sessions: BrowserSessions
) -> None:
    """A browser that shows what it gets to a person gets a page; a program gets JSON."""
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with client_of(world, sessions, loopback=False) as client:
        page = await client.get("/", headers=browser)
        gone = await client.get("/SRT-1", headers=browser)
        program = await client.get("/")
        api = await client.get("/api/v1/state", headers=browser)
        elsewhere = await client.get("/", headers=browser | {"host": "<b>.example"})

    told = [page, gone, program, api, elsewhere]
    assert [answer.status_code for answer in told] == [401, 401, 401, 401, 403]
    kinds = [answer.headers["content-type"].partition(";")[0] for answer in told]
    assert kinds == ["text/html", "text/html", "application/json", "application/json", "text/html"]
    assert "<code>sortie open</code>" in page.text
    assert page.headers["www-authenticate"] == api.headers["www-authenticate"]
    assert page.headers["content-security-policy"] == api.headers["content-security-policy"]
    assert "must name the address" in elsewhere.text
    assert "example" not in elsewhere.text
