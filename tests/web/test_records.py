"""What is on record over HTTP: issues, runs and pages of history."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
from starlette.types import ASGIApp

from sortie.facts import HttpAnswered
from sortie.web.access import Access
from sortie.web.app import create_app
from sortie.web.runs import run_document
from tests.web.conftest import ISSUE, RUN, World, ask_raw
from tests.web.leases import LEADS, LED

URL = "http://localhost:7678"
HOLDER = {"authorization": "Bearer right"}
RUN_JSON = {**run_document(RUN), "files_modified": ["a.py"]}


@pytest.fixture
def app(world: World) -> ASGIApp:
    access = Access(host="127.0.0.1", loopback=True, token="right")
    return create_app(world.served(), access, world.facts.append)


@pytest.fixture
async def client(app: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
        yield client


@pytest.mark.parametrize("path", ["/api/v1/issues/DEMO-3", "/api/v1/DEMO-3"])
async def test_an_issue_is_shown_by_either_path(client: httpx.AsyncClient, path: str) -> None:
    """With its entry in the state and its last runs."""
    answer = await client.get(path)

    found = answer.json()
    state = (await client.get("/api/v1/state")).json()
    assert answer.status_code == 200
    assert found["held"] == state["held"][0]
    assert found["runs"] == [RUN_JSON]
    assert {name: found[name] for name in ("issue_identifier", "standing", "since")} == {
        "issue_identifier": "DEMO-3",
        "standing": "held",
        "since": "2026-01-01T12:00:00.000000Z",
    }


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("owner%2Frepo%2312", "owner/repo#12"),
        ("group%2Fsub%2Fproject%237", "group/sub/project#7"),
        ("%2E%2E%2Fstate", "../state"),
        ("..", ".."),
        ("%2e%2e%2f%2e%2e%2fetc%2fpasswd", "../../etc/passwd"),
        ("%252e%252e", "%2e%2e"),
        ("a%00b", "a\0b"),
        ("%C3%BC%F0%9F%A7%B5", "ü🧵"),
        ("%FF", "�"),
        ("a%0d%0aset-cookie:x", "a\r\nset-cookie:x"),
        ("x" * 8000, "x" * 8000),
    ],
)
@pytest.mark.parametrize("prefix", ["/api/v1/issues/", "/api/v1/"])
async def test_an_identifier_is_one_segment_and_only_a_name(
    app: ASGIApp, world: World, prefix: str, written: str, name: str
) -> None:
    """However it is written it reaches the question whole, and no path is made of it."""
    world.issue = "there is none"

    answer = await ask_raw(app, f"{prefix}{written}")

    assert world.commands == [f"issue {name}"]
    assert answer.status == 404
    error = {"error": {"code": "not_found", "message": "there is none"}}
    assert json.loads(answer.body) == error
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/issues/../state",
        "/api/v1/issues/a/b",
        "/api/v1/issues/",
        "/api/v1/issues//explain",
        "/api/v1//state",
        "/api/v1/",
        "//api/v1/state",
        "/api/v1/../../etc/passwd",
        "/api/v1/state/..",
        "/api/v1/runs/a/b",
    ],
)
async def test_dots_and_slashes_lead_nowhere(app: ASGIApp, world: World, path: str) -> None:
    """A path is compared as it is written; nothing is resolved."""
    answer = await ask_raw(app, path)

    assert (answer.status, world.commands) == (404, [])


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/api/v1/refresh", {"POST"}),
        ("GET", "/api/v1/pause", {"POST"}),
        ("POST", "/api/v1/state", {"GET", "HEAD"}),
        ("POST", "/api/v1/DEMO-1", {"GET", "HEAD"}),
        ("DELETE", "/api/v1/issues/DEMO-1", {"GET", "HEAD"}),
    ],
)
async def test_fixed_routes_win(
    client: httpx.AsyncClient, world: World, method: str, path: str, allow: set[str]
) -> None:
    """An issue that is called like a command does not take its path, for whatever method."""
    answer = await client.request(method, path, headers=HOLDER)

    assert (answer.status_code, world.commands) == (405, [])
    assert {m.strip() for m in answer.headers["allow"].split(",")} == allow
    assert answer.json()["error"]["code"] == "method_not_allowed"


async def test_history_is_paged(client: httpx.AsyncClient, world: World) -> None:
    """A full page names the next one in Link; one that is not full is the last."""
    world.runs = tuple(replace(RUN, run_id=f"r-{number}") for number in (3, 2, 1))

    first = await client.get("/api/v1/history?issue=a%2Fb%231&limit=3")
    whole = await client.get("/api/v1/history")

    assert [run["run_id"] for run in first.json()] == ["r-3", "r-2", "r-1"]
    assert first.headers["link"] == (
        '</api/v1/history?issue=a%2Fb%231&limit=3&before=r-1>; rel="next"'
    )
    assert "link" not in whole.headers
    assert world.queries == [
        ("a/b#1", 3, None),
        (None, 100, None),
    ]
    assert world.facts == [HttpAnswered(route="/api/v1/history", status=200)] * 2


async def test_history_of_a_rule_is_paged(client: httpx.AsyncClient, world: World) -> None:
    """The next page is of the same rule; "default" is the top level of the settings."""
    world.runs = (replace(RUN, run_id="r-1", rule="docs"),)

    first = await client.get("/api/v1/history?rule=docs&limit=1")
    await client.get("/api/v1/history?rule=default")
    await client.get("/api/v1/history")

    assert first.json()[0]["rule"] == "docs"
    assert first.headers["link"] == ('</api/v1/history?rule=docs&limit=1&before=r-1>; rel="next"')
    assert world.rules_asked == ["docs", "", None]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=",
        "limit=x",
        "limit=1e2",
        "limit=%D9%A1",
        "limit=" + "9" * 5000,
        "issue=",
        "before=",
        "rule=",
    ],
)
async def test_a_page_that_cannot_be_is_refused(client: httpx.AsyncClient, query: str) -> None:
    """With a sentence that says what would do."""
    answer = await client.get(f"/api/v1/history?{query}")

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")


async def test_leaders_are_paged_by_their_tokens(client: httpx.AsyncClient, world: World) -> None:
    """A page names the next one while there may be one; what is no token is refused."""
    world.leaders = (LEADS, LED)

    first = await client.get("/api/v1/leaderships?limit=1")
    rest = await client.get("/api/v1/leaderships?limit=2&before=7")
    refused = await client.get("/api/v1/leaderships?before=x")

    (led,) = first.json()["leaderships"]
    assert (led["token"], led["leader"], led["until"]) == (7, "east:71", None)
    assert first.headers["link"] == '</api/v1/leaderships?limit=1&before=7>; rel="next"'
    assert [one["ended_by"] for one in rest.json()["leaderships"]] == ["expired"]
    assert "link" not in rest.headers
    assert refused.status_code == 400


async def test_a_run_that_is_not_recorded_is_404(client: httpx.AsyncClient) -> None:
    """Asked for, or as the end of a page."""
    run = await client.get("/api/v1/runs/r-9")
    page = await client.get("/api/v1/history?before=unknown")

    assert [run.status_code, page.status_code] == [404, 404]


@pytest.mark.parametrize(
    "path", ["/api/v1/history", "/api/v1/runs/r-1", "/api/v1/issues/A", "/api/v1/A"]
)
async def test_a_database_that_is_away_is_told(
    client: httpx.AsyncClient, world: World, path: str
) -> None:
    """Rather than shown as nothing."""
    world.broken = True

    answer = await client.get(path)

    assert (answer.status_code, answer.json()["error"]["message"]) == (503, "the disk is away")


async def test_texts_of_strangers_stay_data(client: httpx.AsyncClient, world: World) -> None:
    """Script in a title and lone surrogates come back as JSON, which no browser runs."""
    title = "</script><script>alert(1)</script>\ud800"
    world.issue = replace(ISSUE, title=title)
    world.runs = (replace(RUN, error="\udcff<b>"),)

    issue = await client.get("/api/v1/issues/A")
    history = await client.get("/api/v1/history")

    assert issue.json()["title"] == title
    assert history.json()[0]["error"] == "\udcff<b>"
    for answer in (issue, history):
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "script-src 'self'" in answer.headers["content-security-policy"]
