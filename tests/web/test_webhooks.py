"""Deliveries over HTTP: who is let in, what it costs, and that nothing else follows."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx
import pytest
import trio
from starlette.types import Message, Receive, Scope, Send
from trio.testing import MockClock

from sortie.facts import Fact, HttpAnswered, WebhookReceived, WebhookRejected
from sortie.model.webhooks import Mention
from sortie.scheduler.events import DeliveriesSeen
from sortie.web.webhooks.bodies import (
    BODY_SECONDS,
    LARGEST_BODY,
    LARGEST_OF_SENDER,
    LARGEST_TOGETHER,
    SMALL,
)
from sortie.web.webhooks.gate import WebhookGate
from sortie.web.webhooks.rate import AT_ONCE
from sortie.web.webhooks.receiver import WebhookReceiver, WebhookSubscriber
from sortie.web.webhooks.replays import LIFE, MOST, SeenDeliveries
from sortie.web.webhooks.wakes import MOST_MENTIONS
from tests.webhooks.senders import KINDS, NOW, SECRET, body_of, issue_payload, signed

Part = bytes | float
"""What a client sends next, or the seconds for which it sends nothing."""


async def other_app(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Stand for all other routes."""
    await send({"type": "http.response.start", "status": 299, "headers": []})
    await send({"type": "http.response.body", "body": b"another"})


class Gate:
    """A receiver for one workflow, and all that follows from deliveries to it."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self.facts: list[Fact] = []
        self.told: list[DeliveriesSeen] = []
        self.receiver = WebhookReceiver(self.facts.append, lambda: NOW)
        self.secrets = secrets
        self.receiver.lead("one", self.subscriber())
        self.app = WebhookGate(self.receiver, other_app)

    def subscriber(self, told: Callable[[DeliveriesSeen], object] | None = None) -> Any:
        """Return a workflow with the secrets."""
        return WebhookSubscriber(
            secrets=lambda: self.secrets,
            publish=self.facts.append,
            tell=told or self.told.append,
        )

    async def send(
        self,
        kind: str,
        *parts: Part,
        headers: Mapping[str, str],
        method: str = "POST",
        path: str | None = None,
        sender: str = "203.0.113.7",
    ) -> int:
        """Send a delivery in parts, and return the status of the answer."""
        waiting = list(parts)
        status = 0

        async def receive() -> Message:
            while waiting and isinstance(waiting[0], float):
                await trio.sleep(waiting.pop(0))  # type: ignore[arg-type]
            part = waiting.pop(0) if waiting else b""
            return {"type": "http.request", "body": part, "more_body": bool(waiting)}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]

        await self.app(
            {
                "type": "http",
                "method": method,
                "path": path or f"/webhooks/{kind}",
                "http_version": "1.1",
                "client": (sender, 50_000),
                "headers": [(k.encode(), v.encode("latin-1")) for k, v in headers.items()],
            },
            receive,
            send,
        )
        return status

    async def deliver(self, kind: str, number: int = 7, id_: str = "1") -> int:
        """Send an authentic delivery about an issue."""
        body = body_of(kind, issue_payload(kind, number))
        return await self.send(kind, body, headers=signed(kind, body, id_=id_, event="issues"))

    def rejected(self) -> list[tuple[str, str]]:
        """Return what was counted as not taken."""
        return [(f.kind, f.reason) for f in self.facts if isinstance(f, WebhookRejected)]


@asynccontextmanager
async def gate_of(*kinds: str) -> AsyncIterator[Gate]:
    """Take deliveries of these kinds for the length of the block."""
    gate = Gate(dict.fromkeys(kinds, SECRET))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(gate.receiver.run)
        yield gate
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_delivery_names_is_told_within_seconds(
    kind: str, autojump_clock: MockClock
) -> None:
    """Once, with what comes beside it, and how long it has waited."""
    assert autojump_clock
    async with gate_of(*KINDS) as gate:
        statuses = [await gate.deliver(kind, number, str(number)) for number in (7, 8)]
        assert gate.told == []
        await trio.sleep(2)

    (told,) = gate.told
    assert statuses == [202, 202]
    assert told.kind == kind
    assert 0 < told.waited <= 1
    assert len({name for one in told.mentions for name in one.issues}) >= 2
    assert gate.receiver.record(kind).received == 2
    assert gate.receiver.record(kind).last_at == NOW
    assert [fact.kind for fact in gate.facts if isinstance(fact, WebhookReceived)] == [kind] * 2


def attacks(kind: str) -> Mapping[str, tuple[bytes, dict[str, str], int, str]]:
    """Return requests that are not taken: the body, headers, the status and what is counted."""
    body = body_of(kind, issue_payload(kind))
    good = signed(kind, body, event="issues")
    unsigned = {"content-type": "application/json"}
    other = signed(kind, body_of(kind, issue_payload(kind, 8)), event="issues")
    wrong = signed(kind, body, secret="another secret altogether", event="issues")
    forged = {key: value[:-3] if "signature" in key else value for key, value in good.items()}
    huge = body + b" " * LARGEST_BODY
    return {
        "no signature": (body, unsigned, 401, "signature"),
        "wrong secret": (body, wrong, 401, "signature"),
        "cut signature": (body, forged, 401, "signature"),
        "another body": (body, other, 401, "signature"),
        "form": (body, {**good, "content-type": "text/plain"}, 415, "content_type"),
        "no type": (body, {**good, "content-type": ""}, 415, "content_type"),
        "huge": (huge, signed(kind, huge), 413, "too_large"),
        "says huge": (body, {**good, "content-length": "9" * 30}, 413, "too_large"),
        "two ends": (
            body,
            {**good, "content-length": "5", "transfer-encoding": "chunked"},
            400,
            "malformed",
        ),
        "no json": (b"issue=7", signed(kind, b"issue=7", event="issues"), 400, "malformed"),
    }


@pytest.mark.parametrize("kind", KINDS)
async def test_an_attack_changes_nothing_but_counters(kind: str, autojump_clock: MockClock) -> None:
    """And the answer to a bad signature does not say what is wrong with it."""
    assert autojump_clock
    async with gate_of(*KINDS) as gate:
        for name, (body, headers, status, reason) in attacks(kind).items():
            gate.facts.clear()

            found = await gate.send(kind, body, headers=headers)

            if kind == "linear" and name == "no json":
                status = 401  # its time stands in the body
            assert (name, found) == (name, status)
            assert gate.rejected()[-1] == (kind, reason), name
        await trio.sleep(5)

    assert gate.told == []


async def test_a_replay_counts_once(autojump_clock: MockClock) -> None:
    """With the same id or another one, for a day; what a copy claims for an id is not believed."""
    async with gate_of("github", "gitlab") as gate:
        assert await gate.deliver("github", id_="1") == 202
        assert await gate.deliver("github", id_="1") == 202
        assert await gate.deliver("github", id_="2") == 202
        assert await gate.deliver("github", 8, id_="2") == 202
        assert await gate.deliver("gitlab", id_="1") == 202
        await trio.sleep(5)
        assert gate.rejected() == [("github", "replayed")] * 2
        assert gate.receiver.record("github").received == 2
        assert [event.kind for event in gate.told] == ["github", "gitlab"]
        autojump_clock.jump(LIFE + 1)
        assert await gate.deliver("github", id_="1") == 202
        assert gate.receiver.record("github").received == 3


async def test_an_old_time_is_refused(autojump_clock: MockClock) -> None:
    """Though everything else is right."""
    assert autojump_clock
    async with gate_of("linear", "gitlab") as gate:
        for kind in ("linear", "gitlab"):
            body = body_of(kind, issue_payload(kind), at=NOW - 400)
            status = await gate.send(kind, body, headers=signed(kind, body, at=NOW - 400))
            assert status == 401
        await trio.sleep(5)

    assert gate.rejected() == [("linear", "timestamp"), ("gitlab", "timestamp")]
    assert gate.told == []


@pytest.mark.parametrize("path", ["jira", "github/", "", "GitHub", "github/x", "a\r\nb: c"])
async def test_what_is_not_set_up_is_not_there(path: str) -> None:
    """And what a stranger writes into a path is told nowhere."""
    async with gate_of("github") as gate:
        status = await gate.send("", b"{}", headers={}, path=f"/webhooks/{path}")

    assert status == 404
    assert gate.rejected() == [("other", "unknown_kind")]
    assert path == "" or path not in str(gate.facts).replace("github", "")


async def test_other_routes_are_those_of_the_server() -> None:
    """As are webhooks, where none is set up."""
    async with gate_of() as nothing, gate_of("github") as gate:
        assert await nothing.deliver("github") == 299
        assert await gate.send("", b"", headers={}, path="/api/v1/state") == 299
        assert await gate.send("github", b"", headers={}, method="GET") == 405
        assert gate.rejected() == []
        assert HttpAnswered(route="/webhooks/{kind}", status=405) in gate.facts


async def test_a_slow_body_is_given_up(autojump_clock: MockClock) -> None:
    """Also one that comes byte by byte; a body in parts that is quick enough is taken."""
    assert autojump_clock
    async with gate_of("github") as gate:
        body = body_of("github", issue_payload("github"))
        headers = signed("github", body, event="issues")
        drip: list[Part] = [piece for byte in body for piece in (bytes([byte]), 1.0)]
        began = trio.current_time()

        slow = await gate.send("github", *drip, headers=headers)
        silent = await gate.send("github", body[:5], 100.0, body[5:], headers=headers)
        took = trio.current_time() - began
        quick = await gate.send("github", body[:5], 1.0, body[5:], headers=headers)

    assert (slow, silent, quick) == (408, 408, 202)
    assert took <= 2 * BODY_SECONDS + 1
    assert gate.rejected() == [("github", "too_slow")] * 2


async def test_large_bodies_together_are_bounded(autojump_clock: MockClock) -> None:
    """What comes beyond is refused, also of one address alone; none is held any more at the end."""
    assert autojump_clock
    async with gate_of("github") as gate:
        body = b"{" + b" " * (LARGEST_BODY - 2) + b"}"
        headers = signed("github", body, event="issues")

        async def statuses_of(senders: list[str]) -> list[int]:
            statuses: list[int] = []

            async def send(sender: str) -> None:
                parts = (body[:-1], 1.0, body[-1:])
                statuses.append(await gate.send("github", *parts, headers=headers, sender=sender))

            async with trio.open_nursery() as nursery:
                for sender in senders:
                    nursery.start_soon(send, sender)
            return statuses

        most, of_one = LARGEST_TOGETHER // LARGEST_BODY, LARGEST_OF_SENDER // LARGEST_BODY
        of_many = await statuses_of([f"203.0.113.{at}" for at in range(most + 4)])
        of_few = await statuses_of(["203.0.113.7"] * most)

        assert (of_many.count(429), of_many.count(202)) == (4, most)
        assert (of_few.count(429), of_few.count(202)) == (most - of_one, of_one)
        assert await gate.deliver("github", id_="later") == 202


async def test_bodies_of_strangers_keep_none_of_usual_size_out(autojump_clock: MockClock) -> None:
    """However many large ones are held, and for how long."""
    assert autojump_clock
    async with gate_of("github") as gate:
        parts: list[Part] = [b" " * (LARGEST_BODY - 1), BODY_SECONDS / 2, b" "]
        headers = signed("github", b"another", event="issues")
        payload = issue_payload("github") | {"more": "x" * (SMALL - 1000)}
        usual = body_of("github", payload)
        async with trio.open_nursery() as nursery:
            for at in range(40):
                send = partial(gate.send, headers=headers, sender=f"203.0.113.{at}")
                nursery.start_soon(send, "github", *parts)
            await trio.sleep(1)
            status = await gate.send(
                "github", usual, headers=signed("github", usual, event="issues")
            )

    assert status == 202
    assert ("github", "flood") in gate.rejected()


@pytest.mark.parametrize("count", [1500, pytest.param(10_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("authentic", [True, False])
async def test_a_flood_takes_no_memory_and_is_one_event(
    authentic: bool, count: int, autojump_clock: MockClock
) -> None:
    """Thousands of deliveries, each another, are a single event of bounded size. One of thousands
    that is authentic is taken, and one that is sent again and again keeps no other out."""
    assert autojump_clock
    async with gate_of("github") as gate:
        statuses: dict[int, int] = {}
        tracemalloc.start()
        for number in range(count):
            body = body_of("github", issue_payload("github", number))
            headers = signed("github", body, id_=str(number), event="issues")
            if not authentic:
                headers["x-hub-signature-256"] = f"sha256={'0' * 64}"
            status = await gate.send("github", body, headers=headers)
            statuses[status] = statuses.get(status, 0) + 1
            gate.facts.clear()
        if not authentic:
            again = {await gate.deliver("github", count, "real") for _ in range(AT_ONCE + 1)}
            assert again == {await gate.deliver("github", count + 1, "another")} == {202}
            gate.facts.clear()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        await trio.sleep(5)

    assert statuses == ({202: AT_ONCE, 429: count - AT_ONCE} if authentic else {401: count})
    assert held < 4 * 1024 * 1024
    assert len(gate.told) == 1
    for event in gate.told:
        assert event.overflowed is authentic
        assert sum(len(one.issues) for one in event.mentions) <= MOST_MENTIONS


def test_what_has_come_is_remembered_within_bounds() -> None:
    """What came first is forgotten first."""
    seen = SeenDeliveries()

    for number in range(MOST):
        assert not seen.has(f"id {number}", str(number).encode(), 0.0)
        seen.add(f"id {number}", str(number).encode(), 0.0)

    assert len(seen) == MOST
    assert seen.has("another", str(MOST - 1).encode(), 0.0)
    assert not seen.has("x" * 10_000, b"new", LIFE + 1.0)
    assert len(seen) == 0
    seen.add("x" * 10_000, b"new", LIFE + 1.0)
    assert len(seen) == 2


async def test_all_workflows_with_the_secret_are_told(autojump_clock: MockClock) -> None:
    """The leader's secrets count where a process leads and has stood by."""
    assert autojump_clock
    two: list[DeliveriesSeen] = []
    standby: list[DeliveriesSeen] = []
    async with gate_of("github") as gate:
        gate.receiver.lead("two", gate.subscriber(two.append))
        gate.receiver.lead(
            "other",
            WebhookSubscriber(
                secrets=lambda: {"github": "another secret altogether"},
                publish=gate.facts.append,
                tell=lambda _event: pytest.fail("the secret is not its own"),
            ),
        )
        gate.receiver.stand_by("two", gate.subscriber(standby.append))
        assert await gate.deliver("github") == 202
        await trio.sleep(2)
        gate.receiver.lead_no_more("two")
        assert await gate.deliver("github", 8, id_="2") == 202
        await trio.sleep(2)

    mention = (Mention(places=("acme/web",), issues=("7",)),)
    assert [event.mentions for event in two] == [mention]
    assert [len(told) for told in (gate.told, standby)] == [2, 1]


async def test_a_secret_that_changes_counts_at_once() -> None:
    """As the settings are read again."""
    async with gate_of("github") as gate:
        assert await gate.deliver("github") == 202
        gate.secrets = {"github": "another secret altogether"}
        assert await gate.deliver("github", 8, id_="2") == 401
        gate.secrets = {}
        assert await gate.deliver("github", 9, id_="3") == 299


async def test_the_access_rules_of_people_do_not_count() -> None:
    """Neither Host nor Origin, nor a token."""
    gate = Gate({"github": SECRET})
    body = body_of("github", issue_payload("github"))
    headers = {**signed("github", body, event="issues"), "host": "hooks.example", "origin": "x"}
    transport = httpx.ASGITransport(app=gate.app)

    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        answer = await client.post("/webhooks/github", content=body, headers=headers)
        refused = await client.post("/webhooks/github", content=body)

    assert answer.json() == {"message": "what it names is looked at"}
    assert refused.status_code == 401
    assert SECRET not in refused.text + answer.text
