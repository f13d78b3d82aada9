"""Notifications as JSON to a webhook, signed as Standard Webhooks says.

See https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md.
"""

from __future__ import annotations

import hmac
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit

from sortie.config.notifications import NotificationTarget
from sortie.http.answers import HttpAnswer
from sortie.http.budget import Use, retry_after
from sortie.http.client import HttpClient, open_client
from sortie.http.credentials import FixedCredential
from sortie.http.requests import HttpRequest, Provider
from sortie.model import LostAnswer, TrackerError
from sortie.model.secrets import redactor
from sortie.model.texts import start_of
from sortie.model.times import rfc3339
from sortie.notifications.channel import SendFailed
from sortie.store.outbox import Outgoing

REPEATED_HEADER = "sortie-repeated"
"""The header of a request whose notification may have arrived before."""

_PASSING = frozenset({408, 425, 429})
"""Refusals that may pass; all others below 500 are final."""

_NO_SUCCESS = frozenset(range(300, 600))
_ANSWER_KEPT, _ANSWER_SHOWN = 4096, 200


def payload_of(outgoing: Outgoing, workflow: str) -> bytes:
    """Return what is sent of a notification: the same however often it is sent."""
    told, issue = outgoing.notification, outgoing.notification.issue
    created = datetime.fromtimestamp(outgoing.created_at, UTC)
    body = {
        "type": told.event,
        "timestamp": rfc3339(created),
        "data": {
            "id": told.key,
            "workflow": workflow,
            "title": told.title,
            "text": told.text,
            "issue": None
            if issue is None
            else {
                "id": issue.id,
                "identifier": issue.identifier,
                "title": issue.title,
                "url": issue.url,
            },
            "rule": told.rule or None,
            "run_id": told.run_id,
            "links": {name.lower().replace(" ", "_"): link for name, link in told.links},
        },
    }
    return json.dumps(body).encode()


def signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message, with its version."""
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return f"v1,{b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


def headers_of(outgoing: Outgoing, key: bytes, timestamp: int, body: bytes) -> Mapping[str, str]:
    """Return the headers of a request; an id has ASCII characters only."""
    message_id = outgoing.notification.key.encode("ascii", "backslashreplace").decode()
    repeated = {REPEATED_HEADER: "maybe"} if outgoing.unsure else {}
    return {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(key, message_id, timestamp, body),
        **repeated,
    }


class WebhookChannel:
    """Sends to one webhook through the client, one notification at a time."""

    batch = 10

    def __init__(
        self,
        client: HttpClient,
        target: NotificationTarget,
        workflow: str,
        wall: Callable[[], float],
    ) -> None:
        self._client = client
        self._path = _path_of(target.address)
        self._key = target.key
        self._redact = redactor(target.secrets)
        self._workflow = workflow
        self._wall = wall

    def messages(self, batch: Sequence[Outgoing]) -> Iterator[Sequence[Outgoing]]:
        """Yield one notification at a time."""
        return ((outgoing,) for outgoing in batch)

    async def send(self, message: Sequence[Outgoing]) -> str:
        """Send one notification; return the status of the answer. Raises SendFailed."""
        (outgoing,) = message
        body = payload_of(outgoing, self._workflow)
        request = HttpRequest(
            method="POST",
            path=self._path,
            from_root=True,
            what="cannot send a notification",
            content=body,
            headers=headers_of(outgoing, self._key, int(self._wall()), body),
            use=Use.WRITE,
            signed=False,
            tail=_ANSWER_KEPT,
            wanted=_NO_SUCCESS,
        )
        try:
            answer = await self._client.ask(request)
        except TrackerError as exc:
            raise SendFailed(
                str(exc), unsure=isinstance(exc, LostAnswer), retry_after=exc.retry_after
            ) from exc
        if not answer.ok:
            raise _refusal(answer, self._redact)
        return f"it answered {answer.status}"


def _refusal(answer: HttpAnswer, redact: Callable[[str], str]) -> SendFailed:
    said = start_of(answer.text(), _ANSWER_SHOWN, redact)
    text = f"it answered {answer.status}{f': {said}' if said else ''}"
    if 300 <= answer.status < 400:
        text += "; redirects are not followed: set webhook to the address that is meant"
    final = answer.status < 500 and answer.status not in _PASSING
    wait = None if final else retry_after(answer.headers)
    return SendFailed(text, final=final, unsure=not final, retry_after=wait)


def _path_of(address: str) -> str:
    parts = urlsplit(address)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


@asynccontextmanager
async def open_webhook(
    target: NotificationTarget, workflow: str, wall: Callable[[], float]
) -> AsyncIterator[WebhookChannel]:
    """Hold the client of a webhook open; no other target shares it. ``wall`` returns Unix
    seconds."""
    parts = urlsplit(target.address)
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    server = f"{parts.scheme}://{parts.netloc.removeprefix(user)}"
    headers = {} if not user else _basic(parts.username, parts.password)
    provider = Provider(name=f"webhook {target.name}", headers=headers, at_once=1)
    credential = FixedCredential({}, tuple(target.secrets))
    async with open_client(provider, server, credential) as client:
        yield WebhookChannel(client, target, workflow, wall)


def _basic(user: str | None, password: str | None) -> Mapping[str, str]:
    given = f"{user or ''}:{password or ''}".encode()
    return {"Authorization": f"Basic {b64encode(given).decode()}"}
