"""Transcripts over HTTP: pages that can be followed, as JSON and as text."""

from __future__ import annotations

import httpx
import pytest

from sortie.model.times import rfc3339
from sortie.web.access import Access
from sortie.web.app import create_app
from tests.telemetry.transcripts.fake import NOON, RUN, some_lines
from tests.web.conftest import World

PATH = f"/api/v1/runs/{RUN}/transcript"


async def get(world: World, path: str) -> httpx.Response:
    access = Access(host="127.0.0.1", loopback=True)
    app = create_app(world.served(), access, world.facts.append)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.get(path)


@pytest.fixture(autouse=True)
def _transcript(world: World) -> None:
    world.transcripts.lines[RUN] = some_lines(["one", "<b>two</b>", "three"])


async def test_a_page_has_the_documented_shape(world: World) -> None:
    """Each line with its number, time, turn and kind; nothing follows behind the end."""
    answer = await get(world, PATH)

    assert answer.status_code == 200
    assert answer.json() == {
        "run_id": RUN,
        "lines": [
            {
                "line": number,
                "at": rfc3339(NOON),
                "turn": 1,
                "kind": "output",
                "text": text,
                "role": None,
            }
            for number, text in ((1, "one"), (2, "<b>two</b>"), (3, "three"))
        ],
        "next": None,
        "live": False,
        "ended": True,
        "damage": None,
    }


async def test_pages_follow_one_another(world: World) -> None:
    """Who passes ``next`` as ``after`` gets every line once."""
    found, after = [], 0
    while after is not None:
        page = (await get(world, f"{PATH}?after={after}&limit=2")).json()
        found += [line["line"] for line in page["lines"]]
        after = page["next"]

    assert found == [1, 2, 3]


async def test_a_live_run_can_be_followed(world: World) -> None:
    """While it goes on there is always a ``next``, also where nothing new was said."""
    world.transcripts.live.add(RUN)

    first = (await get(world, PATH)).json()
    second = (await get(world, f"{PATH}?after=3")).json()
    world.transcripts.live.clear()
    last = (await get(world, f"{PATH}?after=3")).json()

    assert (first["live"], first["next"]) == (True, 3)
    assert (second["lines"], second["next"]) == ([], 3)
    assert (last["lines"], last["next"], last["ended"]) == ([], None, True)


async def test_as_text_a_header_says_how_it_goes_on(world: World) -> None:
    """One line for each, plain text, and a link to the next page where there is one."""
    first = await get(world, f"{PATH}?limit=2&format=text")
    rest = await get(world, first.links["next"]["url"])

    assert first.headers["content-type"] == "text/plain; charset=utf-8"
    assert first.text == (
        "2026-11-22 12:00:00Z   1 output     one\n2026-11-22 12:00:00Z   1 output     <b>two</b>\n"
    )
    assert rest.text == "2026-11-22 12:00:00Z   1 output     three\n"
    assert "link" not in rest.headers


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("after=-1", "after"),
        ("after=x", "after"),
        ("after=1e3", "after"),
        (f"after={'9' * 400}", "after"),
        ("after=%D9%A3", "after"),
        ("limit=0", "limit"),
        ("limit=10001", "limit"),
        ("limit=", "limit"),
        ("format=xml", "format"),
    ],
)
async def test_what_makes_no_sense_is_refused(world: World, query: str, word: str) -> None:
    """A parameter that is none is a 400 that names it."""
    answer = await get(world, f"{PATH}?{query}")

    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(word)


@pytest.mark.parametrize(
    "name",
    [
        RUN.replace("1", "2"),
        "x",
        "%2E%2E%2F%2E%2E%2Fetc%2Fpasswd",
        RUN.upper().replace("1", "A"),
        "%00",
        "x" * 5000,
    ],
)
async def test_what_is_no_run_is_not_found(world: World, name: str) -> None:
    """Neither ids without a transcript nor tricks with paths get anywhere."""
    answer = await get(world, f"/api/v1/runs/{name}/transcript")

    assert answer.status_code == 404


async def test_trouble_is_told(world: World) -> None:
    """Where the file cannot be read that is a 503 that says why, and no path."""
    world.transcripts.trouble = PermissionError(13, "Permission denied", "/secret/place")

    answer = await get(world, PATH)

    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == "the transcript cannot be read: Permission denied"
