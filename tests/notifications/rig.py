"""Targets, notices and channels for the tests of notifications."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import trio

from sortie.config.notifications import NotificationTarget, named
from sortie.model.notifications import HELD, Notice, NotifiedIssue
from sortie.notifications.channel import SendFailed
from sortie.store.outbox import Outgoing

KEY = "whsec_" + "c2VjcmV0LW9mLWEtdGVzdC0wMTIzNDU2Nzg5"
NOON = 1_800_000_000.0
"""A time in Unix seconds: 2027-01-15 08:00 UTC."""


def target(**keys: Any) -> NotificationTarget:
    """Return a target with a name; a chat where nothing else is said."""
    if "webhook" in keys:
        keys = {"secret": KEY} | keys
    elif "url" not in keys:
        keys["url"] = "json://localhost/chat"
    (found,) = named([NotificationTarget.model_validate({"events": "all"} | keys)])
    return found


def notice(key: str, event: str = HELD, **fields: Any) -> Notice:
    """Return a notice of an issue."""
    issue = NotifiedIssue(id="1", identifier="T-1", title="Paint the shed")
    known: dict[str, Any] = {
        "title": f"T-1: {key}",
        "text": "what happened\nwhat to do",
        "issue": issue,
    }
    return Notice(key=key, event=event, **known | fields)


def outgoing(key: str = "held:1", **fields: Any) -> Outgoing:
    """Return a notice on its way."""
    told = {name: fields.pop(name) for name in ("title", "text", "links") if name in fields}
    known: dict[str, Any] = {"id": 1, "notification": notice(key, **told), "created_at": NOON}
    return Outgoing(**known | fields)


@dataclass
class FakeChannel:
    """A target that notes what reaches it. ``answer`` decides of each message, and may raise
    SendFailed; ``most`` notices go together."""

    answer: Callable[[Sequence[Outgoing]], None] = lambda _message: None
    batch: int = 10
    most: int = 1
    arrived: list[tuple[str, ...]] = field(default_factory=list)
    repeated: set[str] = field(default_factory=set)
    asked: list[float] = field(default_factory=list)

    def messages(self, batch: Sequence[Outgoing]) -> Iterator[Sequence[Outgoing]]:
        """Divide a batch."""
        return (batch[at : at + self.most] for at in range(0, len(batch), self.most))

    async def send(self, message: Sequence[Outgoing]) -> str:
        """Take a message, or not."""
        await trio.lowlevel.checkpoint()
        self.asked.append(trio.current_time())
        self.answer(message)
        self.arrived.append(tuple(one.notification.key for one in message))
        self.repeated |= {one.notification.key for one in message if one.unsure}
        return "taken"

    @property
    def keys(self) -> list[str]:
        """All that arrived, in order."""
        return [key for message in self.arrived for key in message]


@dataclass
class Outage:
    """Answers nothing for ``seconds`` of trio's clock; with ``lost`` it takes what it is sent."""

    seconds: float
    lost: bool = False
    since: float | None = None

    def __call__(self, _message: Sequence[Outgoing]) -> None:
        if self.since is None:
            self.since = trio.current_time()
        if trio.current_time() - self.since < self.seconds:
            raise SendFailed("it is down", unsure=self.lost)
