"""Answers that are text of any length, of which the end is wanted, and that may lie elsewhere."""

from __future__ import annotations

import pytest

from sortie.http import bodies
from sortie.http.client import HttpClient
from sortie.http.requests import HttpRequest
from sortie.model import TrackerError, TrackerErrorKind
from tests.http.conftest import TOKEN, Opened, Things
from tests.trackers.server.exchange import Reply
from tests.trackers.server.faults import Refuse, Reset
from tests.trackers.server.serving import TestServer

TEXT = HttpRequest(path="/log", what="cannot read the log", tail=10, follow=True)


def text(content: bytes) -> Reply:
    """Return a text as an answer."""
    return Reply(body=content, content_type="text/plain")


async def tail(client: HttpClient) -> bytes:
    """Return the end of the text."""
    return (await client.ask(TEXT)).content


async def test_the_end_of_a_text_is_kept(opened: Opened, things: Things) -> None:
    """Whatever it says; it need not be JSON, and may be empty."""
    async with opened() as client:
        found = []
        for content in (b"", b"short", b"x" * 500_000 + b"the very end"):
            things.replies["/api/log"] = text(content)
            found.append(await tail(client))

    assert found == [b"", b"short", b"e very end"]


async def test_a_text_without_an_end_is_left(
    opened: Opened, things: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once more of it came than is read, and the next request works."""
    monkeypatch.setattr(bodies, "LONGEST_TEXT", 100_000)
    things.replies["/api/log"] = text(b"a" * 50_000 + b"b" * 5_000_000 + b"the very end")

    async with opened() as client:
        found = await tail(client)
        again = await tail(client)

    assert found == again == b"b" * 10


async def test_a_text_on_another_server_is_read_without_the_credential(
    opened: Opened, things: Things, server: TestServer
) -> None:
    """One redirect is followed, wherever it leads; its refusal names this server alone."""
    away = f"http://localhost:{server.url.rpartition(':')[2]}/elsewhere?signature=secret"
    things.replies["/api/log"] = Reply(status=302, headers={"Location": away})
    things.replies["/elsewhere"] = text(b"found")

    async with opened() as client:
        found = await tail(client)
        things.replies["/elsewhere"] = Reply(status=302, headers={"Location": away})
        with pytest.raises(TrackerError) as again:
            await tail(client)
        things.replies["/elsewhere"] = Reply(status=500, body={"message": "broken"})
        with pytest.raises(TrackerError) as failed:
            await tail(client)
        server.inject(Reset(performed=False), path="elsewhere")
        with pytest.raises(TrackerError) as lost:
            await tail(client)

    signed = [TOKEN in str(request.headers) for request in server.asked]
    assert found == b"found"
    assert signed == [True, False] * 4
    assert "/elsewhere" in str(again.value)
    for error in (again.value, failed.value, lost.value):
        assert "signature" not in str(error)
    for error in (failed.value, lost.value):
        assert error.kind is TrackerErrorKind.UNAVAILABLE


@pytest.mark.parametrize(
    "location", ["", "file:///etc/passwd", "ftp://example.org/x", "https://", "http://[", "//a:b@c"]
)
async def test_a_redirect_to_no_address_is_an_error(
    opened: Opened, server: TestServer, location: str
) -> None:
    """Nothing is asked then; an empty one leads to the same place, where nothing is found."""
    server.inject(Refuse(status=302, headers={"Location": location}))

    async with opened() as client:
        with pytest.raises(TrackerError):
            await tail(client)

    assert len(server.asked) == (2 if not location else 1)


async def test_without_leave_no_redirect_is_followed(opened: Opened, server: TestServer) -> None:
    """As with any other answer."""
    server.inject(Refuse(status=302, headers={"Location": "/api/thing"}))

    async with opened() as client:
        with pytest.raises(TrackerError) as refused:
            await client.ask(HttpRequest(path="/log", what="cannot read", tail=10))

    assert refused.value.kind is TrackerErrorKind.CLOSED
    assert len(server.asked) == 1
