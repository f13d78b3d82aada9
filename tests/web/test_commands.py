"""The commands over HTTP: who may give them, what they are given, and what is answered."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator

import httpx
import pytest
from msgspec.structs import replace

from sortie.facts import HttpAnswered
from sortie.model import Spending
from sortie.store import DayRow
from sortie.web.access import Access
from sortie.web.app import create_app
from sortie.web.source import CommandAnswer, CommandStatus
from tests.web.conftest import World

URL = "http://localhost:7678"
HOLDER = {"authorization": "Bearer right"}
COMMANDS = (
    ("/api/v1/refresh", "/api/v1/refresh", "refresh"),
    ("/api/v1/pause", "/api/v1/pause", "pause"),
    ("/api/v1/resume", "/api/v1/resume", "resume"),
    ("/api/v1/issues/DEMO-1/stop", "/api/v1/issues/{identifier}/stop", "stop DEMO-1"),
    ("/api/v1/issues/DEMO-1/retry", "/api/v1/issues/{identifier}/retry", "retry DEMO-1"),
)


ANSWER = "/api/v1/issues/DEMO-1/answer"


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    access = Access(host="127.0.0.1", loopback=True, token="right")
    app = create_app(world.served(), access, world.facts.append)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
        yield client


@pytest.mark.parametrize(("path", "route", "command"), COMMANDS)
async def test_a_command_is_given_and_answered(
    client: httpx.AsyncClient, world: World, path: str, route: str, command: str
) -> None:
    """A POST with the token reaches the control once, and is counted under its pattern."""
    answer = await client.post(path, headers=HOLDER)

    assert (answer.status_code, answer.json()) == (200, {"message": "ok"})
    assert world.commands == [command]
    assert world.facts == [HttpAnswered(route=route, status=200)]


@pytest.mark.parametrize(
    ("status", "code"),
    [(404, "not_found"), (409, "conflict"), (503, "unavailable")],
)
async def test_a_refused_command_says_why(
    client: httpx.AsyncClient, world: World, status: CommandStatus, code: str
) -> None:
    """What cannot be done is an error in the common shape with the control's sentence."""
    world.answer = CommandAnswer(status=status, message="it runs")

    answer = await client.post("/api/v1/issues/A/retry", headers=HOLDER)

    assert answer.status_code == status
    assert answer.json() == {"error": {"code": code, "message": "it runs"}}
    assert world.facts == [HttpAnswered(route="/api/v1/issues/{identifier}/retry", status=status)]


@pytest.mark.parametrize(("path", "route", "_command"), COMMANDS)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_command_is_a_post(
    client: httpx.AsyncClient, world: World, path: str, route: str, _command: str, method: str
) -> None:
    """Any other method is 405 with the one that is possible, and does nothing."""
    answer = await client.request(method, path, headers=HOLDER)

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert world.commands == []
    assert world.facts == [HttpAnswered(route=route, status=405)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("DEMO-1", "DEMO-1"),
        ("group%2Fproject%237", "group/project#7"),
        ("group%2fproject%237", "group/project#7"),
        ("%C3%BC%20%F0%9F%A7%B5", "ü 🧵"),
        ("50%25", "50%"),
        ("a%252Fb", "a%2Fb"),
        ("x%2Fstop", "x/stop"),
        ("..%2F..%2Frefresh", "../../refresh"),
        ("a%0Ab%00c", "a\nb\x00c"),
        ("a%3Fb", "a?b"),
        ("+", "+"),
        ("%zz", "%zz"),
        ("%ff", "\ufffd"),
    ],
)
async def test_an_identifier_may_hold_anything(
    client: httpx.AsyncClient, world: World, written: str, meant: str
) -> None:
    """A percent-encoded identifier arrives as it is, slashes and percent signs included."""
    for action in ("stop", "retry"):
        await client.post(f"{URL}/api/v1/issues/{written}/{action}?x=1", headers=HOLDER)
    await client.get(f"{URL}/api/v1/issues/{written}/explain")

    assert world.commands == [f"stop {meant}", f"retry {meant}", f"explain {meant}"]
    assert {fact.route for fact in world.facts if isinstance(fact, HttpAnswered)} == {
        "/api/v1/issues/{identifier}/stop",
        "/api/v1/issues/{identifier}/retry",
        "/api/v1/issues/{identifier}/explain",
    }


async def test_an_explanation_is_the_view(client: httpx.AsyncClient, world: World) -> None:
    """The answer is the view, field for field; a gate says whether it is open."""
    answer = await client.get("/api/v1/issues/DEMO-3/explain")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "issue_id": "3",
        "issue_identifier": "DEMO-3",
        "title": "Paint the fence",
        "state": "To Do",
        "standing": "held",
        "detail": "an operator stopped it",
        "since": "2026-01-01T12:00:00.000000Z",
        "run_id": None,
        "turn": None,
        "attempt": 2,
        "gates": [
            {"gate": "blockers", "open": True, "reason": None},
            {"gate": "claim", "open": False, "reason": "it is held (operator)"},
        ],
        "next_run_at": None,
        "next_step": "somebody asks for a retry",
        "ways_out": ["sortie retry DEMO-3"],
        "last_failure": None,
        "budgets": [],
        "issue_url": None,
        "labels": [],
        "description": "",
        "workspace": None,
        "delivery": None,
        "watch": None,
        "rule": None,
        "passed_over": [],
        "question": None,
    }


async def test_an_unknown_issue_cannot_be_explained(
    client: httpx.AsyncClient, world: World
) -> None:
    """The sentence about an issue that is not known comes as 404."""
    world.explanation = "there is no issue X"

    answer = await client.get("/api/v1/issues/X/explain")

    assert answer.status_code == 404
    assert answer.json() == {"error": {"code": "not_found", "message": "there is no issue X"}}


async def test_a_title_may_hold_what_no_encoding_has(
    client: httpx.AsyncClient, world: World
) -> None:
    """A lone surrogate in a text does not break the answer."""
    assert not isinstance(world.explanation, str)
    world.explanation = dataclasses.replace(world.explanation, title="x\ud800")

    answer = await client.get("/api/v1/issues/DEMO-3/explain")

    assert answer.json()["title"] == "x\ud800"


async def test_days_are_told_with_what_each_agent_used(
    client: httpx.AsyncClient, world: World
) -> None:
    """As ``sortie stats`` prints them; what an agent does not tell is null and never 0."""
    day = DayRow(
        day="2026-11-22", agent="kiro", runs=2, turns=3, seconds=4.5, spent=Spending(credits=0.5)
    )
    world.days = (day, replace(day, day="2026-11-21"))

    both = (await client.get("/api/v1/stats")).json()["days"]
    one = (await client.get("/api/v1/stats?days=1")).json()["days"]

    assert [found["day"] for found in both] == ["2026-11-22", "2026-11-21"]
    assert one == both[:1]
    assert (one[0]["agent"], one[0]["runs"], one[0]["credits"]) == ("kiro", 2, 0.5)
    assert (one[0]["tokens"], one[0]["cost_usd"]) == (None, None)


@pytest.mark.parametrize("days", ["0", "-1", "367", "many", "", "1.5", "9" * 5000, "\u0661"])
async def test_a_number_of_days_that_is_none_is_refused(
    client: httpx.AsyncClient, days: str
) -> None:
    """With a sentence that says which would do."""
    answer = await client.get("/api/v1/stats", params={"days": days})

    assert answer.status_code == 400
    assert "1 to 366" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"text": "2", "by": "kim"}, "2 by kim (command)"),
        ({"text": "the \u00fcber one\n"}, "the \u00fcber one\n by an operator (command)"),
    ],
)
async def test_an_answer_is_given(
    client: httpx.AsyncClient, world: World, body: dict[str, str], said: str
) -> None:
    """With its text, and with who gives it, as far as that is told."""
    answer = await client.post(ANSWER, headers=HOLDER, json=body)

    assert (answer.status_code, answer.json()) == (200, {"message": "ok"})
    assert world.commands == [f"answer DEMO-1: {said}"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"2",
        b"[" * 60_000,
        b'{"by": "kim"}',
        b'{"text": 2}',
        b'{"text": " "}',
        b'{"text": "2", "by": null}',
        b'{"text": "2", "way": "default"}',
        b'{"text": "' + b"x" * 16_001 + b'"}',
        b"\xff",
    ],
)
async def test_a_body_that_is_no_answer(
    client: httpx.AsyncClient, world: World, body: bytes
) -> None:
    """It is refused with what is expected, and nothing is done."""
    answer = await client.post(ANSWER, headers=HOLDER, content=body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")
    assert world.commands == []


async def test_an_answer_of_a_stranger(client: httpx.AsyncClient, world: World) -> None:
    """It needs what other commands need."""
    answer = await client.post(ANSWER, json={"text": "2"})

    assert answer.status_code == 401
    assert world.commands == []
