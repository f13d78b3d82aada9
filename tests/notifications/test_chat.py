"""Messages through apprise."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import trio

from sortie.model import SortieError
from sortie.notifications import chat
from sortie.notifications.channel import SendFailed
from sortie.notifications.chat import AppriseChannel, made_sender, message_of, open_chat
from tests.notifications.rig import outgoing, target
from tests.ports import free_port
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.serving import TestServer, serving


@dataclass
class Chat:
    """Notes what it is sent, and gives an answer."""

    reply: Reply = field(default_factory=Reply)
    received: list[Received] = field(default_factory=list)

    def answer(self, request: Received) -> Reply:
        """See Service."""
        self.received.append(request)
        return self.reply


@pytest.fixture
def service() -> Chat:
    return Chat()


@pytest.fixture
def server(service: Chat) -> Iterator[TestServer]:
    with serving(service) as running:
        yield running


def at(server: TestServer) -> str:
    return server.url.replace("http://", "json://")


async def test_a_message_arrives(service: Chat, server: TestServer) -> None:
    """With title, what happened, and links; no thread but that of the target sends it."""
    before = threading.active_count()
    async with open_chat(target(url=at(server))) as channel:
        said = await channel.send([outgoing(links=(("Issue", "https://x.example/1"),))])

    (request,) = service.received
    assert said == "it took the message"
    assert request.json["title"] == "T-1: held:1"
    assert request.json["message"] == (
        "Paint the shed\nwhat happened\nwhat to do\nIssue: https://x.example/1"
    )
    assert threading.active_count() <= before + 2  # threads of trio, which are used again
    assert not any("ThreadPool" in one.name for one in threading.enumerate())


@pytest.mark.parametrize(("status", "final"), [(404, True), (429, False), (500, False)])
async def test_refusals(service: Chat, server: TestServer, status: int, final: bool) -> None:
    """A status is found in what apprise says, and no secret of the address is shown."""
    service.reply = Reply(status=status)
    url = at(server).replace("json://", "json://me:pass-word-123@")

    with pytest.raises(SendFailed) as failed:
        await AppriseChannel(target(url=url)).send([outgoing()])

    assert (failed.value.final, failed.value.unsure) == (final, not final)
    assert str(status) in str(failed.value)
    assert "pass-word" not in str(failed.value)


async def test_what_is_down_is_an_error_in_words() -> None:
    """It says what apprise says."""
    with pytest.raises(SendFailed, match="Connection error") as failed:
        await AppriseChannel(target(url=f"json://127.0.0.1:{free_port()}/")).send([outgoing()])

    assert not failed.value.final


async def test_a_thread_that_hangs_is_given_up_and_has_no_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its target fails until it ends; then it can be told again."""
    running, most, go_on = 0, 0, threading.Event()
    monkeypatch.setattr(chat, "SEND_LIMIT", 0.05)

    def hang(_self: AppriseChannel, _title: str, _body: str) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        go_on.wait()
        running -= 1

    monkeypatch.setattr(AppriseChannel, "_send", hang)
    channel = AppriseChannel(target())
    for _ in range(3):
        with pytest.raises(SendFailed, match="no answer") as failed:
            await channel.send([outgoing()])
        assert failed.value.unsure

    go_on.set()
    with trio.fail_after(60):
        while running:
            await trio.sleep(0.01)
    monkeypatch.setattr(chat, "SEND_LIMIT", 20.0)

    assert await channel.send([outgoing()]) == "it took the message"
    assert most == 1


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("nosuch://somewhere", "does not understand"),
        ("slack://short", "does not understand"),
        ("json://a.example, json://b.example", "several addresses"),
    ],
)
def test_addresses_that_cannot_be_used(address: str, said: str) -> None:
    """Each is a sentence, without the address."""
    with pytest.raises(SortieError, match=said) as failed:
        made_sender(address)

    assert address not in str(failed.value)


def test_several_are_one_message() -> None:
    """With each title before its text; a repetition says so."""
    title, body = message_of([outgoing("held:1"), outgoing("held:2", unsure=True)])

    assert title == "T-1: held:1, and 1 more"
    assert body == (
        "T-1: held:1\nPaint the shed\nwhat happened\nwhat to do\n\n"
        "T-1: held:2\n(This may have reached you before.)\nPaint the shed\n"
        "what happened\nwhat to do"
    )


async def test_a_message_is_of_bounded_length() -> None:
    """What does not fit goes with the next; nothing is left out, and the order stays."""
    long = "x" * 2000
    batch = [outgoing(str(number), text=long if number == 2 else "short") for number in range(5)]

    messages = [list(one) for one in AppriseChannel(target()).messages([*batch, *batch])]

    assert [one for message in messages for one in message] == [*batch, *batch]
    assert len(messages) == 2
