"""Takes deliveries of webhooks: who may send, what is refused, and who is told.

Rule 1: nothing but the right secret lets a delivery in: no token, session or address does. It is
compared in constant time, and a refusal does not say what was wrong.
Rule 2: of a delivery that was let in nothing is believed but what it names, and it is answered
before anything is looked at.
Rule 3: bytes, time and authentic deliveries a second are bounded; what comes beyond is refused, and
polls find what it would have told. What strangers send, or send again, is not counted there: to
verify a delivery costs less than to receive it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import trio
from msgspec import DecodeError, Struct
from starlette.types import Receive, Scope, Send

from sortie.facts import Fact, HttpAnswered
from sortie.facts.webhooks import UNKNOWN_KIND, Rejection, WebhookReceived, WebhookRejected
from sortie.scheduler.events import DeliveriesSeen
from sortie.web.middleware import ambiguous_length, other_version
from sortie.web.responses import error_response, json_response
from sortie.web.webhooks.bodies import BODY_SECONDS, LARGEST_BODY, BodyReader, drain
from sortie.web.webhooks.rate import Rate
from sortie.web.webhooks.records import KindRecord, RejectedDeliveries
from sortie.web.webhooks.replays import SeenDeliveries
from sortie.web.webhooks.wakes import CollectedWakes, wait_for_more
from sortie.webhooks import ADAPTERS, NotAuthentic, OutOfTime, WebhookAdapter, WebhookDelivery

BELOW = "/webhooks/"
"""The path below which each kind has its own."""

_ROUTE = f"{BELOW}{{kind}}"
_JSON = "application/json"
_FORBIDDEN = "the signature or token is missing, or is not that of the secret, or was used before"


class WebhookSubscriber(Struct, kw_only=True):
    """A workflow that takes deliveries: its secrets by kind as they are now, where facts about its
    deliveries go, and what is told what they name."""

    secrets: Callable[[], Mapping[str, str]]
    publish: Callable[[Fact], object]
    tell: Callable[[DeliveriesSeen], object]


class _Subscribed:
    def __init__(self, subscriber: WebhookSubscriber) -> None:
        self.subscriber = subscriber
        self.wakes = CollectedWakes(subscriber.tell)


class WebhookReceiver:
    """Takes the deliveries of all workflows of a process; ``wall`` gives Unix seconds."""

    def __init__(self, publish: Callable[[Fact], object], wall: Callable[[], float]) -> None:
        self._publish = publish
        self._wall = wall
        self._leading: dict[str, _Subscribed] = {}
        self._standing_by: dict[str, _Subscribed] = {}
        self._records: dict[str, KindRecord] = {}
        self._seen: dict[str, SeenDeliveries] = {}
        self._rates: dict[str, Rate] = {}
        self._bodies = BodyReader()
        self._collecting = trio.Event()

    def lead(self, name: str, subscriber: WebhookSubscriber) -> None:
        """Take deliveries for a workflow that this process leads, before any as a standby."""
        self._leading[name] = _Subscribed(subscriber)

    def stand_by(self, name: str, subscriber: WebhookSubscriber) -> None:
        """Take deliveries for a workflow whenever this process does not lead it."""
        self._standing_by[name] = _Subscribed(subscriber)

    def lead_no_more(self, name: str) -> None:
        """Take none any more for a workflow as its leader."""
        self._leading.pop(name, None)

    def stand_by_no_more(self, name: str) -> None:
        """Take none any more for a workflow as a standby."""
        self._standing_by.pop(name, None)

    def record(self, kind: str) -> KindRecord:
        """Return what has come of a kind."""
        return self._records.get(kind) or KindRecord()

    @property
    def is_set_up(self) -> bool:
        """Whether any workflow takes deliveries of any kind."""
        return any(one.subscriber.secrets() for one in self._subscriptions())

    def _subscriptions(self) -> list[_Subscribed]:
        return list({**self._standing_by, **self._leading}.values())

    async def run(self) -> None:
        """Hand on what deliveries name, once what belongs together has come, until cancelled."""
        while True:
            await self._collecting.wait()
            await wait_for_more()
            self._collecting = trio.Event()
            for one in self._subscriptions():
                one.wakes.hand_on(trio.current_time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose path begins with BELOW."""
        kind = str(scope["path"]).removeprefix(BELOW)
        secrets = self._secrets(kind)
        if not secrets:
            self._refuse(UNKNOWN_KIND, "unknown_kind")
            await drain(receive)
            await self._answer(404, "no such webhook is set up", scope, receive, send)
            return
        if scope["method"] != "POST":
            await drain(receive)
            headers = {"allow": "POST"}
            await self._answer(405, "deliveries are POSTed", scope, receive, send, headers)
            return
        if (fault := other_version(scope) or ambiguous_length(scope["headers"])) is not None:
            await drain(receive)
            self._refuse(kind, "malformed")
            await self._answer(fault.status, fault.message, scope, receive, send)
            return
        client = scope.get("client")
        sender = "" if client is None else str(client[0])
        status, message = await self._taken(kind, secrets, _headers(scope), sender, receive)
        headers = {"retry-after": "10"} if status == 429 else {}
        await self._answer(status, message, scope, receive, send, headers)

    def _secrets(self, kind: str) -> dict[str, list[_Subscribed]]:
        """Return the secrets of a kind, each with the workflows that have it."""
        found: dict[str, list[_Subscribed]] = {}
        for one in self._subscriptions():
            if (secret := one.subscriber.secrets().get(kind)) is not None:
                found.setdefault(secret, []).append(one)
        return found

    async def _taken(
        self,
        kind: str,
        secrets: Mapping[str, list[_Subscribed]],
        headers: Mapping[str, str],
        sender: str,
        receive: Receive,
    ) -> tuple[int, str]:
        """Take a delivery in, or refuse it; return the status of the answer and its message."""
        adapter = ADAPTERS.load(kind)
        refused = self._refused_by_headers(kind, adapter, headers)
        if refused is not None:
            await drain(receive)
            return refused
        body = await self._bodies.read(sender, receive)
        if isinstance(body, str):
            self._refuse(kind, body)
            if body == "too_large":
                return 413, f"a delivery may have {LARGEST_BODY // 1024**2} MiB at most"
            if body == "too_slow":
                return 408, f"the body did not arrive within {BODY_SECONDS:g} s"
            return 429, "there are too many large deliveries now"
        delivery = WebhookDelivery(headers=headers, body=body, at=self._wall())
        fits: list[_Subscribed] = []
        reason: Rejection = "signature"
        for secret, subscriptions in secrets.items():
            try:
                adapter.verify(delivery, secret)
                fits += subscriptions
            except OutOfTime:
                reason = "timestamp"
            except NotAuthentic:
                pass
            except (DecodeError, RecursionError):
                reason = "malformed"
        if not fits:
            self._refuse(kind, reason)
            return 401, _FORBIDDEN
        return self._noted(kind, adapter, delivery, fits)

    def _refused_by_headers(
        self, kind: str, adapter: WebhookAdapter, headers: Mapping[str, str]
    ) -> tuple[int, str] | None:
        """Refuse what needs no look at the body."""
        if not any(headers.get(name) for name in adapter.signed_by):
            self._refuse(kind, "signature")
            return 401, _FORBIDDEN
        if headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            self._refuse(kind, "content_type")
            return 415, f"a delivery has the content type {_JSON}"
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > LARGEST_BODY:
            self._refuse(kind, "too_large")
            return 413, f"a delivery may have {LARGEST_BODY // 1024**2} MiB at most"
        return None

    def _noted(
        self, kind: str, adapter: WebhookAdapter, delivery: WebhookDelivery, fits: list[_Subscribed]
    ) -> tuple[int, str]:
        """Note what an authentic delivery names, for the workflows whose secret it has."""
        seen, now = self._seen.setdefault(kind, SeenDeliveries()), trio.current_time()
        id_, digest = adapter.id_of(delivery), _digest(delivery.body)
        if seen.has(id_, digest, now):
            self._refuse(kind, "replayed")
            return 202, "it has come before"
        if not self._rates.setdefault(kind, Rate()).allows(now):
            self._refuse(kind, "flood")
            return 429, "there are too many deliveries now"
        seen.add(id_, digest, now)
        record = self._records.setdefault(kind, KindRecord())
        record.received, record.last_at = record.received + 1, delivery.at
        for one in fits:
            one.subscriber.publish(WebhookReceived(kind=kind))
        try:
            mention = adapter.mention(delivery)
        except (DecodeError, RecursionError):
            self._refuse(kind, "malformed")
            return 400, "the delivery cannot be read"
        if mention is None:
            return 202, "it names nothing that is watched"
        for one in fits:
            one.wakes.add(kind, mention, now)
        self._collecting.set()
        return 202, "what it names is looked at"

    def _refuse(self, kind: str, reason: Rejection) -> None:
        """Count a delivery that was not taken. What it holds is told nowhere."""
        record = self._records.setdefault(kind, KindRecord())
        known = record.rejected.setdefault(reason, RejectedDeliveries())
        known.count, known.last_at = known.count + 1, self._wall()
        fact = WebhookRejected(kind=kind, reason=reason, count=known.count)
        asked = [one for one in self._subscriptions() if kind in one.subscriber.secrets()]
        for one in asked or self._subscriptions():
            one.subscriber.publish(fact)

    async def _answer(
        self,
        status: int,
        message: str,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._publish(HttpAnswered(route=_ROUTE, status=status))
        more = {"cache-control": "no-store", "x-content-type-options": "nosniff", **(headers or {})}
        if status >= 400:
            answer = error_response(status, message, more)
        else:
            answer = json_response(status, {"message": message}, more)
        await answer(scope, receive, send)


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers; one that comes twice counts as both together, which fits nothing."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
