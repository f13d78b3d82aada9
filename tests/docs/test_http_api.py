"""The page of the HTTP API: it has every operation, and its examples do what it says."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from sortie.web import event_stream
from sortie.web.access import Access
from sortie.web.app import operations_of
from sortie.web.responses import _CODES
from sortie.web.sessions import BrowserSessions
from tests.docs.pages import code_blocks, page, section, table, word
from tests.telemetry.transcripts.fake import EXAMPLE as TRANSCRIBED
from tests.web.conftest import World
from tests.web.live_server import TOKEN, live_server

TEXT = page("http-api.md")
HEADING = re.compile(r"^### (GET|POST) (/\S+)$", re.MULTILINE)
OPERATIONS = [match.groups() for match in HEADING.finditer(TEXT)]
BASE = "http://127.0.0.1:7678/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request as it is typed, and what is shown as its answer."""

    method: str
    url: str
    headers: dict[str, str]
    shown: Any
    content: str | None = None


def example_of(method: str, path: str) -> Example:
    """Return the example below an operation's heading."""
    blocks = code_blocks(section(TEXT, f"{method} {path}"))
    (command,) = (text for language, text in blocks if language == "sh")
    shown = [json.loads(text) for language, text in blocks if language == "json"]
    words = iter(shlex.split(command)[1:])
    sent, headers, url, content = "GET", {}, "", None
    for one in words:
        if one == "-X":
            sent = next(words)
        elif one == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value.replace("$TOKEN", TOKEN)
        elif one == "-d":
            content = next(words)
        elif not one.startswith("-"):
            url = one
    shows = shown[0] if shown else None
    return Example(method=sent, url=url, headers=headers, shown=shows, content=content)


def test_every_operation_is_on_the_page() -> None:
    """A heading for each, as the OpenAPI document has them, and no other."""
    world = World()
    access = Access(host="127.0.0.1", loopback=True, sessions=BrowserSessions(lambda: 0.0))
    served = operations_of(world.served(), access)

    assert sorted(OPERATIONS) == sorted((one.method, one.path) for one in served)


def test_every_code_of_an_error_is_on_the_page() -> None:
    """With the status that it comes with."""
    written = {int(row["status"]): word(row["code"]) for row in table(TEXT, "status")}

    assert written == _CODES


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, live_server() as url:
        patch.setattr(event_stream, "STREAM_SECONDS", 0.02)
        yield url


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_an_example_does_what_the_page_says(server: str, method: str, path: str) -> None:
    """It is a request of its operation that succeeds, and its answer has the fields shown."""
    example = example_of(method, path)
    recorded = httpx.get(f"{server}api/v1/history", timeout=60).json()[-1]["run_id"]
    run = TRANSCRIBED if path.endswith("/transcript") else recorded
    assert example.url.startswith(BASE)
    pattern = re.sub(r"\\\{\w+\\\}", "[^/?]+", re.escape(path))
    assert re.fullmatch(rf"{pattern}(\?.*)?", example.url.removeprefix(BASE.rstrip("/")))

    url = example.url.replace(BASE, server).replace("$RUN", run)
    answer = httpx.request(example.method, url, headers=example.headers, content=example.content)

    assert example.method == method
    if path.endswith("/diff"):  # the runs there have changed nothing
        assert "no change" in answer.text
        return
    if "/notifications/" in path or path.endswith("/answer"):  # there are none
        assert answer.status_code == 409
        return
    assert answer.status_code in (200, 202), answer.text
    if example.shown is not None:
        assert names(answer.json()) == names(example.shown)


def names(document: Any) -> set[str]:
    """Return the names of the fields of a document, or of the first of many."""
    return set(document[0] if isinstance(document, list) else document)
