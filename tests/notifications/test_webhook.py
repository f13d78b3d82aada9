"""What a webhook gets, and what becomes of its answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from sortie.notifications.channel import SendFailed
from sortie.notifications.webhook import open_webhook, payload_of, signature
from tests.notifications.rig import KEY, NOON, outgoing, target
from tests.ports import free_port
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.serving import TestServer, serving

NOW = 1_800_000_123.9


@dataclass
class Hook:
    """Notes what it is sent, and gives an answer."""

    reply: Reply = field(default_factory=lambda: Reply(status=204))
    received: list[Received] = field(default_factory=list)

    def answer(self, request: Received) -> Reply:
        """See Service."""
        self.received.append(request)
        return self.reply


@pytest.fixture
def hook() -> Hook:
    return Hook()


@pytest.fixture
def server(hook: Hook) -> Iterator[TestServer]:
    with serving(hook) as running:
        yield running


async def send(url: str, **fields: object) -> str:
    async with open_webhook(target(webhook=url), "team", lambda: NOW) as channel:
        return await channel.send([outgoing(**fields)])  # type: ignore[arg-type]


async def test_it_is_posted_with_its_headers(hook: Hook, server: TestServer) -> None:
    """Path, query, id, time and body are as they should be."""
    said = await send(f"{server.url}/a/hook?x=1")

    (request,) = hook.received
    told = json.loads(request.body)
    assert said == "it answered 204"
    assert (request.method, request.path, request.query) == ("POST", "/a/hook", {"x": "1"})
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-id"] == "held:1"
    assert request.headers["webhook-timestamp"] == "1800000123"
    assert "sortie-repeated" not in request.headers
    assert told["type"] == "held"
    assert told["data"]["issue"]["identifier"] == "T-1"
    assert request.body == payload_of(outgoing(), "team")


def test_the_signature_is_that_of_the_standard() -> None:
    """The library of the standard makes the same one."""
    at, body = int(NOON), payload_of(outgoing(), "team")
    moment = datetime.fromtimestamp(at, UTC)

    theirs = Webhook(KEY).sign("held:1", moment, body.decode())

    assert signature(target(webhook="https://x.example").key, "held:1", at, body) == theirs


async def test_a_repetition_says_so(hook: Hook, server: TestServer) -> None:
    """Under the id of before, with the same body."""
    await send(server.url)
    await send(server.url, unsure=True, tries=3)

    first, again = hook.received
    assert again.headers["sortie-repeated"] == "maybe"
    assert again.headers["webhook-id"] == first.headers["webhook-id"]
    assert again.body == first.body


@pytest.mark.parametrize(
    ("status", "final", "unsure"),
    [
        (301, True, False),
        (400, True, False),
        (401, True, False),
        (404, True, False),
        (410, True, False),
        (408, False, True),
        (425, False, True),
        (429, False, False),
        (500, False, True),
        (503, False, True),
    ],
)
async def test_refusals(
    hook: Hook, server: TestServer, status: int, final: bool, unsure: bool
) -> None:
    """What is refused for good, what may pass, and what may have been taken all the same."""
    hook.reply = Reply(status=status, body=b"no", headers={"Retry-After": "7"})

    with pytest.raises(SendFailed, match=str(status)) as failed:
        await send(server.url)

    assert (failed.value.final, failed.value.unsure) == (final, unsure)
    assert failed.value.retry_after == (None if final else 7.0)
    assert "hook" not in str(failed.value).replace("webhook", "")


async def test_a_refusal_that_repeats_a_secret_hides_it(hook: Hook, server: TestServer) -> None:
    """Whoever reads the error sees neither the token of the address nor the key."""
    hook.reply = Reply(status=404, body=f"no T0ken-0123456789abc, and {KEY}".encode())

    with pytest.raises(SendFailed) as failed:
        await send(f"{server.url}/T0ken-0123456789abc")

    assert str(failed.value) == "it answered 404: no ***, and ***"


async def test_a_text_is_an_answer_as_good_as_any(hook: Hook, server: TestServer) -> None:
    """A receiver need not answer JSON."""
    hook.reply = Reply(status=200, body=b"ok, thank you")

    assert await send(server.url) == "it answered 200"


async def test_what_was_never_sent_cannot_have_arrived() -> None:
    """A connection that is refused leaves no doubt, and the error shows no path."""
    with pytest.raises(SendFailed, match="cannot be reached") as failed:
        await send(f"http://127.0.0.1:{free_port()}/T0ken-0123456789")

    assert not failed.value.unsure
    assert not failed.value.final
    assert "T0ken" not in str(failed.value)
