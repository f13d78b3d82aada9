"""No configured secret is in an answer to a program, wherever it came from."""

from __future__ import annotations

import dataclasses
import json

import httpx
import pytest

from sortie.web.access import Access
from sortie.web.app import create_app
from sortie.web.redaction import without_secrets
from sortie.web.source import CommandAnswer
from sortie.web.state_feed import StateFeed
from tests.web.conftest import ISSUE, RUN, STATE, World

SECRET = 'sk-live-5f1c"0de/ü'
HOLDER = {"authorization": "Bearer right"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/state"),
        ("GET", "/api/v1/issues/A"),
        ("GET", "/api/v1/A"),
        ("GET", "/api/v1/issues/A/explain"),
        ("GET", "/api/v1/history"),
        ("GET", "/api/v1/runs/r-1"),
        ("POST", "/api/v1/pause"),
        ("POST", "/api/v1/issues/A/stop"),
    ],
)
async def test_a_secret_in_any_text_is_replaced(world: World, method: str, path: str) -> None:
    """Said by an agent, an issue, an error or a command's answer, and with a length that holds."""
    text = f"it said {SECRET}."
    assert not isinstance(world.explanation, str)
    world.state = dataclasses.replace(
        STATE, held=(dataclasses.replace(STATE.held[0], detail=text),)
    )
    world.issue = dataclasses.replace(ISSUE, title=text)
    world.explanation = dataclasses.replace(world.explanation, detail=text)
    world.runs = (dataclasses.replace(RUN, error=text),)
    world.answer = CommandAnswer(status=409, message=text)
    world.secrets = {SECRET}
    access = Access(host="127.0.0.1", loopback=True, token="right")
    app = create_app(world.served(), access, world.facts.append)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.request(method, path, headers=HOLDER)

    assert "5f1c" not in answer.text
    assert "it said ***." in answer.text
    assert answer.headers["content-length"] == str(len(answer.content))
    answer.json()


def test_no_secret_is_in_live_events() -> None:
    """Neither in the whole nor in what changes."""
    odd = dataclasses.replace(
        STATE, held=(dataclasses.replace(STATE.held[0], detail=f"it said {SECRET}."),)
    )
    looks = iter([STATE, odd])
    feed = StateFeed(lambda: next(looks), lambda: {SECRET})
    feed.changes()

    (change,) = feed.changes()
    (whole,) = feed.whole()

    assert json.loads(change.data)["state"]["held"][0]["detail"] == "it said ***."
    assert json.loads(whole.data)["held"][0]["detail"] == "it said ***."


def test_json_keeps_its_shape() -> None:
    """Texts are starred, names of fields and numbers are not."""
    document = json.dumps({"running": [{"title": f"a {SECRET}", "turn": 3}, None]}).encode()

    assert json.loads(without_secrets(document, {"running", SECRET})) == {
        "running": [{"title": "a ***", "turn": 3}, None]
    }
    assert without_secrets(b'{"a": 1}', {SECRET}) == b'{"a": 1}'
