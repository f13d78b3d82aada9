"""Lists in pages."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.http.answers import HttpAnswer
from sortie.http.pages import next_link, walk
from sortie.http.requests import HttpRequest
from sortie.model import TrackerError
from tests.http.conftest import Opened, Things
from tests.trackers.server.exchange import Reply
from tests.trackers.server.serving import TestServer

FIRST = HttpRequest(path="/things", what="cannot list the things", params=[("size", 2)])


@pytest.mark.parametrize(
    ("link", "path"),
    [
        ('<{base}/things?page=2>; rel="next"', "/things?page=2"),
        (
            '<{base}/things?page=9>; rel="last", <{base}/things?page=2>; rel="next"',
            "/things?page=2",
        ),
        ("<{base}/things?page=2>; rel=next", "/things?page=2"),
        ('<{base}/things?q=a,b%3B&page=2>; title="x"; rel="next"', "/things?q=a,b%3B&page=2"),
        ("</api/things?page=2>; rel=next", "/things?page=2"),
        ('<https://other.example/v4/things?page=2>; rel="next"', "/things?page=2"),
        ('<{base}/things?page=1>; rel="prev"', None),
        ("", None),
        ("nonsense", None),
    ],
)
async def test_the_next_page_is_where_the_server_says(
    opened: Opened, things: Things, link: str, path: str | None
) -> None:
    """On our server in any case: where it names another one, its query is taken."""
    async with opened() as client:
        headers = {"Link": link.replace("{base}", str(client.endpoint))} if link else {}
        things.replies["/api/things"] = Reply(body=[], headers=headers)
        answer = await client.ask(FIRST)
        following = next_link(client, FIRST, answer)

    assert (following.path if following else None) == path


async def test_pages_are_read_to_the_end(opened: Opened, server: TestServer) -> None:
    """Whatever says which is next, and however short a page is."""
    seen: list[int] = []

    def take(answer: HttpAnswer) -> HttpRequest | None:
        seen.append(answer.json()["id"])
        return (
            replace(FIRST, path="/thing", params=[("page", len(seen))]) if len(seen) < 4 else None
        )

    async with opened() as client:
        await walk(client, replace(FIRST, path="/thing"), take)

    assert len(seen) == len(server.asked) == 4


async def test_a_list_that_turns_in_a_circle_or_never_ends_is_an_error(
    opened: Opened, server: TestServer
) -> None:
    """It is no list that is shorter than it should be."""
    count = 0

    def onward(answer: HttpAnswer) -> HttpRequest:
        nonlocal count
        count += 1
        return replace(FIRST, path="/thing", params=[("page", count)])

    same = replace(FIRST, path="/thing")
    async with opened() as client:
        with pytest.raises(TrackerError, match="cannot list the things: the same page comes twice"):
            await walk(client, same, lambda answer: same)
        with pytest.raises(TrackerError, match="more than 5 pages"):
            await walk(client, same, onward, limit=5)
